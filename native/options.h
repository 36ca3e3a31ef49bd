// Every option that the plan counts on, in one place; applied at each open and verified after it.
#ifndef PLIMSOLL_OPTIONS_H
#define PLIMSOLL_OPTIONS_H

#include <algorithm>
#include <memory>

#include "cache.h"
#include "rocksdb/db.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/options.h"
#include "rocksdb/table.h"
#include "rocksdb/write_buffer_manager.h"
#include "shim.h"

namespace plimsoll {

// One arena block of a memtable: what an almost empty store costs.
constexpr size_t kArenaBlock = 16 << 10;

inline rocksdb::DBOptions database_options(const pl_options& from, std::shared_ptr<rocksdb::WriteBufferManager> buffers,
                                           std::shared_ptr<rocksdb::EventListener> listener) {
  rocksdb::DBOptions o;
  o.create_if_missing = true;
  o.create_missing_column_families = true;
  o.paranoid_checks = true;
  o.write_buffer_manager = std::move(buffers);
  o.listeners.push_back(std::move(listener));
  o.max_open_files = from.max_open_files;
  o.max_file_opening_threads = 1;
  o.max_background_jobs = from.max_background_jobs;
  o.max_subcompactions = 1;
  o.bytes_per_sync = from.bytes_per_sync;
  // No thread of RocksDB that wakes up by itself.
  o.stats_dump_period_sec = 0;
  o.stats_persist_period_sec = 0;
  o.stats_history_buffer_size = 0;
  o.skip_stats_update_on_db_open = true;
  // Writes of ours are one at a time: the arena needs no shard per core.
  o.allow_concurrent_memtable_write = false;
  o.compaction_readahead_size = from.compaction_buffer_bytes;
  o.writable_file_max_buffer_size = from.compaction_buffer_bytes;
  o.max_manifest_file_size = 16 << 20;
  o.info_log_level = rocksdb::WARN_LEVEL;
  o.max_log_file_size = 1 << 20;
  o.keep_log_file_num = 2;
  o.recycle_log_file_num = 0;
  // A soft error (a flush that may work when tried again) is retried; what is worse is reported at once.
  o.max_bgerror_resume_count = 5;
  return o;
}

inline rocksdb::ColumnFamilyOptions family_options(const pl_options& from, std::shared_ptr<rocksdb::Cache> cache) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = std::move(cache);
  table.block_size = 4 << 10;
  // Index and filter of a file in the cache, never pinned. Not in parts: a partitioned index allocates an iterator a
  // read; the small files of the plan keep them small.
  table.cache_index_and_filter_blocks = true;
  table.cache_index_and_filter_blocks_with_high_priority = true;
  table.pin_l0_filter_and_index_blocks_in_cache = false;
  table.pin_top_level_index_and_filter = false;
  table.index_block_restart_interval = 8;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));

  rocksdb::ColumnFamilyOptions o;
  o.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  // One store alone may use half of the row before RocksDB flushes it by itself.
  o.write_buffer_size = std::max<uint64_t>(from.memtable_bytes / 2, 64 << 10);
  // Flushes that wait for the one flushing thread do not stop writes: the row does.
  o.max_write_buffer_number = 16;
  o.min_write_buffer_number_to_merge = 1;
  o.arena_block_size = kArenaBlock;
  o.memtable_prefix_bloom_size_ratio = 0;
  o.compression = rocksdb::kLZ4Compression;
  o.bottommost_compression = rocksdb::kDisableCompressionOption;
  o.target_file_size_base = from.target_file_bytes;
  o.max_bytes_for_level_base = 8 * from.target_file_bytes;
  o.max_compaction_bytes = 25 * from.target_file_bytes;
  o.level0_file_num_compaction_trigger = 4;
  o.ttl = 0;
  o.periodic_compaction_seconds = 0;
  return o;
}

// False with the name and values of the first option that is not what was asked for.
inline bool verify(rocksdb::DB* db, const std::vector<rocksdb::ColumnFamilyHandle*>& families, const pl_options& from,
                   pl_status* status) {
  auto same = [status](const char* name, uint64_t found, uint64_t expected) {
    if (found == expected) return true;
    status->code = PL_WRONG_OPTION;
    status->found = found;
    status->expected = expected;
    snprintf(status->message, sizeof status->message, "%s", name);
    return false;
  };
  const rocksdb::DBOptions d = db->GetDBOptions();
  auto number = [](int value) { return static_cast<uint64_t>(value); };
  bool ok = same("max_open_files", number(d.max_open_files), number(from.max_open_files)) &&
            same("max_background_jobs", number(d.max_background_jobs), number(from.max_background_jobs)) &&
            same("bytes_per_sync", d.bytes_per_sync, from.bytes_per_sync) &&
            same("compaction_readahead_size", d.compaction_readahead_size, from.compaction_buffer_bytes) &&
            same("max_subcompactions", d.max_subcompactions, 1) &&
            same("stats_dump_period_sec", d.stats_dump_period_sec, 0) &&
            same("stats_persist_period_sec", d.stats_persist_period_sec, 0) &&
            same("max_file_opening_threads", number(d.max_file_opening_threads), 1) &&
            same("write_buffer_manager", d.write_buffer_manager->buffer_size(), from.memtable_bytes);
  for (size_t i = 0; ok && i < families.size(); i++) {
    const rocksdb::ColumnFamilyOptions f = db->GetOptions(families[i]);
    ok = same("arena_block_size", f.arena_block_size, kArenaBlock) &&
         same("write_buffer_size", f.write_buffer_size, std::max<uint64_t>(from.memtable_bytes / 2, 64 << 10)) &&
         same("target_file_size_base", f.target_file_size_base, from.target_file_bytes) &&
         same("compression", f.compression, rocksdb::kLZ4Compression);
  }
  return ok;
}

}  // namespace plimsoll
#endif
