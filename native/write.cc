// Writing, flushing and deleting. See shim.h.
#include <cstring>

#include "database.h"
#include "options.h"
#include "rocksdb/convenience.h"

using namespace plimsoll;

namespace {

// What an operation takes in a memtable beside its bytes: node of the skip list, sequence number, lengths, alignment.
constexpr uint64_t kEntry = 48;
// How long memory of finished flushes is waited for when a scan may pin it.
constexpr uint64_t kGraceMs = 20;
constexpr size_t kHeader = 11;  // OP_HEADER_BYTES of src/store/batch.rs

uint32_t little_endian(const unsigned char* at) {
  return static_cast<uint32_t>(at[0]) | static_cast<uint32_t>(at[1]) << 8 | static_cast<uint32_t>(at[2]) << 16 |
         static_cast<uint32_t>(at[3]) << 24;
}

int bad_batch(pl_status* status) {
  fill(status, PL_BAD_BATCH, "the bytes of a batch do not parse");
  return -1;
}

// Puts the operations into db->batch; the memtable bytes they need into *need, and marks the stores they touch.
int encode(pl_db* db, pl_slice operations, uint64_t* need, std::vector<bool>* touched, pl_status* status) {
  const unsigned char* at = reinterpret_cast<const unsigned char*>(operations.data);
  size_t left = operations.size;
  db->batch.Clear();
  while (left > 0) {
    if (left < kHeader) return bad_batch(status);
    const unsigned kind = at[0];
    const uint16_t store = static_cast<uint16_t>(at[1] | at[2] << 8);
    const size_t key_size = little_endian(at + 3), value_size = little_endian(at + 7);
    at += kHeader;
    left -= kHeader;
    if (kind > 1 || key_size > left || value_size > left - key_size) return bad_batch(status);
    Family* family = db->family(store, status);
    if (family == nullptr) return -1;
    const rocksdb::Slice key(reinterpret_cast<const char*>(at), key_size);
    const rocksdb::Slice value(reinterpret_cast<const char*>(at + key_size), value_size);
    const rocksdb::Status s =
        kind == 1 ? db->batch.Put(family->handle, key, value) : db->batch.Delete(family->handle, key);
    if (!s.ok()) return done(status, s);
    *need += key_size + value_size + kEntry;
    if (!(*touched)[store]) {
      (*touched)[store] = true;
      *need += kArenaBlock;
    }
    at += key_size + value_size;
    left -= key_size + value_size;
  }
  return 0;
}

// 0 for a number without family.
uint64_t property(pl_db* db, Family* family, const std::string& name) {
  uint64_t value = 0;
  return family != nullptr && db->db->GetIntProperty(family->handle, name, &value) ? value : 0;
}

bool has_unflushed(pl_db* db, Family* family) {
  return property(db, family, rocksdb::DB::Properties::kNumEntriesActiveMemTable) > 0;
}

rocksdb::Status start_flush(pl_db* db, Family* family) {
  rocksdb::FlushOptions options;
  options.wait = false;
  options.allow_write_stall = true;
  return db->db->Flush(options, family->handle);
}

// Starts the flush of the largest active memtable: 1, or 0 when all are empty, -1 on error.
int flush_largest(pl_db* db, pl_status* status) {
  Family* largest = nullptr;
  uint64_t most = 0;
  for (auto& family : db->families) {
    if (!has_unflushed(db, family.get())) continue;
    const uint64_t bytes = property(db, family.get(), rocksdb::DB::Properties::kCurSizeActiveMemTable);
    if (largest == nullptr || bytes > most) {
      largest = family.get();
      most = bytes;
    }
  }
  if (largest == nullptr) return 0;
  return done(status, start_flush(db, largest)) == 0 ? 1 : -1;
}

bool is_flushing(pl_db* db) {
  for (auto& family : db->families)
    if (property(db, family.get(), rocksdb::DB::Properties::kNumImmutableMemTable) > 0) return true;
  return false;
}

// Waits until `need` more bytes of memtables fit their row. With nothing left to flush a batch always passes.
int make_room(pl_db* db, uint64_t need, pl_status* status) {
  const uint64_t row = db->options.memtable_bytes;
  if (db->buffers->memory_usage() + need <= row) return 0;
  db->waits.fetch_add(1, std::memory_order_relaxed);
  const uint64_t begin = now_ms();
  uint64_t idle_since = 0;
  for (;;) {
    const uint64_t used = db->buffers->memory_usage();
    if (used + need <= row) return 0;
    if (db->listener->stopped(status)) return -1;
    // What is being flushed will be free; start as many more flushes as are needed, the largest first.
    const uint64_t active = std::min<uint64_t>(db->buffers->mutable_memtable_memory_usage(), used);
    int started = 0;
    if (active + need > row) {
      started = flush_largest(db, status);
      if (started < 0) return -1;
    }
    // All is flushed. Memory of finished flushes comes back at once, unless an open scan pins it: then the write
    // passes.
    if (started > 0 || is_flushing(db)) {
      idle_since = 0;
    } else if (db->buffers->memory_usage() <= db->buffers->mutable_memtable_memory_usage()) {
      return 0;
    } else if (idle_since == 0) {
      idle_since = now_ms();
    } else if (db->open_iterators.load(std::memory_order_relaxed) > 0 && now_ms() - idle_since > kGraceMs) {
      return 0;
    }
    if (now_ms() - begin > db->options.stall_deadline_ms) {
      fill(status, PL_STALLED, "memtables stayed full");
      status->found = used;
      status->expected = row;
      return -1;
    }
    if (started == 0) db->listener->wait_for_flush(std::chrono::milliseconds(2));
  }
}

}  // namespace

extern "C" {

int pl_write(pl_db* db, pl_slice operations, pl_status* status) {
  return guarded(status, [&] {
    std::lock_guard<std::mutex> hold(db->writing);
    if (db->listener->stopped(status)) return -1;
    thread_local std::vector<bool> touched;
    touched.assign(db->families.size(), false);
    uint64_t need = 0;
    if (encode(db, operations, &need, &touched, status) != 0) return -1;
    if (make_room(db, need, status) != 0) return -1;
    rocksdb::WriteOptions options;
    options.disableWAL = true;
    if (done(status, db->db->Write(options, &db->batch)) != 0) return -1;
    // After the write: a memtable sealed by the write itself must not take the mark away.
    for (size_t i = 0; i < touched.size(); i++) {
      uint64_t clean = 0;
      if (touched[i]) db->families[i]->dirty_since.compare_exchange_strong(clean, now_ms(), std::memory_order_relaxed);
    }
    return 0;
  });
}

int pl_flush(pl_db* db, uint16_t store, pl_status* status) {
  return guarded(status, [&] {
    Family* family = db->family(store, status);
    if (family == nullptr) return -1;
    rocksdb::FlushOptions options;
    options.allow_write_stall = true;
    return done(status, db->db->Flush(options, family->handle));
  });
}

int pl_flush_older_than(pl_db* db, uint64_t age_ms, pl_status* status) {
  return guarded(status, [&] {
    int started = 0;
    const uint64_t now = now_ms();
    for (auto& family : db->families) {
      if (!family) continue;
      const uint64_t since = family->dirty_since.load(std::memory_order_relaxed);
      if (since == 0 || now - since < age_ms || !has_unflushed(db, family.get())) continue;
      if (done(status, start_flush(db, family.get())) != 0) return -1;
      started++;
    }
    return started;
  });
}

int pl_flush_largest(pl_db* db, pl_status* status) {
  return guarded(status, [&] { return flush_largest(db, status); });
}

int pl_delete_files(pl_db* db, uint16_t store, pl_slice from, pl_slice to, pl_status* status) {
  return guarded(status, [&] {
    Family* family = db->family(store, status);
    if (family == nullptr) return -1;
    const rocksdb::Slice begin = slice(from), end = slice(to);
    return done(status, rocksdb::DeleteFilesInRange(db->db.get(), family->handle, &begin, &end, false));
  });
}

int pl_delete_range(pl_db* db, uint16_t store, pl_slice from, pl_slice to, pl_status* status) {
  return guarded(status, [&] {
    Family* family = db->family(store, status);
    if (family == nullptr) return -1;
    std::lock_guard<std::mutex> hold(db->writing);
    if (make_room(db, from.size + to.size + kEntry + kArenaBlock, status) != 0) return -1;
    rocksdb::WriteOptions options;
    options.disableWAL = true;
    if (done(status, db->db->DeleteRange(options, family->handle, slice(from), slice(to))) != 0) return -1;
    uint64_t clean = 0;
    family->dirty_since.compare_exchange_strong(clean, now_ms(), std::memory_order_relaxed);
    return 0;
  });
}

int pl_compact(pl_db* db, uint16_t store, pl_status* status) {
  return guarded(status, [&] {
    Family* family = db->family(store, status);
    if (family == nullptr) return -1;
    return done(status, db->db->CompactRange(rocksdb::CompactRangeOptions(), family->handle, nullptr, nullptr));
  });
}

}  // extern "C"
