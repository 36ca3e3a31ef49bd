// Opening, closing and reading. See shim.h.
#include "shim.h"

#include <unistd.h>

#include "database.h"
#include "options.h"

using namespace plimsoll;

namespace {

// The families on disk and ours, each once; the first is always the default one, which RocksDB insists on.
std::vector<std::string> family_names(const rocksdb::DBOptions& options, const std::string& path,
                                      const std::vector<std::string>& ours) {
  std::vector<std::string> names;
  if (access((path + "/CURRENT").c_str(), F_OK) == 0) {
    const rocksdb::Status listed = rocksdb::DB::ListColumnFamilies(options, path, &names);
    if (!listed.ok()) names.clear();  // Open will report what is wrong
  }
  if (names.empty()) names.push_back(rocksdb::kDefaultColumnFamilyName);
  for (const std::string& name : ours)
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

// Sorts the handles into stores and the default family; drops the others.
rocksdb::Status sort_handles(pl_db* db, const std::vector<rocksdb::ColumnFamilyHandle*>& handles) {
  rocksdb::Status result;
  for (rocksdb::ColumnFamilyHandle* handle : handles) {
    const std::string name = handle->GetName();
    auto ours = std::find_if(db->families.begin(), db->families.end(), [&](auto& f) { return f && f->name == name; });
    if (ours != db->families.end()) {
      (*ours)->handle = handle;
    } else if (name == rocksdb::kDefaultColumnFamilyName) {
      db->unused_default = handle;
    } else {
      const rocksdb::Status s = db->db->DropColumnFamily(handle);
      if (!s.ok()) result = s;
      db->db->DestroyColumnFamilyHandle(handle);
      db->dropped.push_back(name);
    }
  }
  return result;
}

rocksdb::Status close(pl_db* db) {
  if (!db->db) return rocksdb::Status::OK();
  rocksdb::Status result;
  pl_status unused;
  // Everything is in the changelogs; but what is flushed now need not be restored.
  if (!db->listener->stopped(&unused)) {
    rocksdb::FlushOptions flush;
    flush.allow_write_stall = true;
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    for (auto& family : db->families)
      if (family && family->handle != nullptr) handles.push_back(family->handle);
    result = db->db->Flush(flush, handles);
  }
  for (auto& family : db->families)
    if (family && family->handle != nullptr) db->db->DestroyColumnFamilyHandle(family->handle);
  if (db->unused_default != nullptr) db->db->DestroyColumnFamilyHandle(db->unused_default);
  const rocksdb::Status closed = db->db->Close();
  db->db.reset();
  return result.ok() ? closed : result;
}

int open(pl_db* db, const pl_slice* stores, size_t count, pl_status* status) {
  std::vector<std::string> ours;
  for (size_t i = 0; i < count; i++) {
    db->families.emplace_back();
    if (stores[i].size == 0) continue;
    ours.emplace_back(stores[i].data, stores[i].size);
    db->families.back() = std::make_unique<Family>();
    db->families.back()->name = ours.back();
  }
  db->listener = std::make_shared<Listener>(&db->families);
  db->cache = make_cache(db->options.cache_bytes, db->options.cache_allocator);
  db->buffers = std::make_shared<rocksdb::WriteBufferManager>(db->options.memtable_bytes, nullptr, false);
  db->batch = rocksdb::WriteBatch(db->options.batch_bytes + 64);
  const rocksdb::DBOptions options = database_options(db->options, db->buffers, db->listener);
  const rocksdb::ColumnFamilyOptions family = family_options(db->options, db->cache);
  const std::string path(db->options.path.data, db->options.path.size);

  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  for (const std::string& name : family_names(options, path, ours)) descriptors.emplace_back(name, family);
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  const rocksdb::Status opened = rocksdb::DB::Open(options, path, descriptors, &handles, &db->db);
  if (!opened.ok()) return done(status, opened);
  if (done(status, sort_handles(db, handles)) != 0) return -1;
  std::vector<rocksdb::ColumnFamilyHandle*> open_handles;
  for (auto& f : db->families)
    if (f) open_handles.push_back(f->handle);
  return verify(db->db.get(), open_handles, db->options, status) ? 0 : -1;
}

// The value of the thread's last read: its buffer is reused, a block it pins is released by pl_get_done.
struct LastRead {
  std::string buffer;
  rocksdb::PinnableSlice value{&buffer};
};
thread_local LastRead t_read;

// Filling the cache may be refused; a read that does not fill it may not, not even where it opens a file.
//
// Get allocates and frees 32 bytes a call (a std::function larger than its inline space) and nothing else when the row
// is in memory. MultiGet would save them, but it reads blocks around the cache's allocator, and from files even when
// told not to.
rocksdb::Status read(pl_db* db, rocksdb::ColumnFamilyHandle* family, const rocksdb::Slice& key, bool fill_cache) {
  rocksdb::ReadOptions options;
  options.fill_cache = fill_cache;
  t_read.value.Reset();
  MayRefuse refuse(fill_cache);
  return db->db->Get(options, family, key, &t_read.value);
}

void step(pl_iterator* it) {
  if (it->reverse) {
    it->inner->Prev();
  } else {
    it->inner->Next();
  }
}

// (Re)creates the iterator and puts it on the first row that was not returned yet.
void seek(pl_iterator* it) {
  rocksdb::ReadOptions options;
  options.snapshot = it->snapshot;
  options.fill_cache = it->fill_cache;
  options.iterate_lower_bound = &it->lower;
  options.iterate_upper_bound = &it->upper;
  it->inner.reset();
  it->inner.reset(it->db->db->NewIterator(options, it->family));
  if (!it->started) {
    // The bounds make the last row the last one below `to`.
    if (it->reverse) {
      it->inner->SeekToLast();
    } else {
      it->inner->Seek(it->from);
    }
    return;
  }
  if (it->reverse) {
    it->inner->SeekForPrev(it->last);
  } else {
    it->inner->Seek(it->last);
  }
  if (it->inner->Valid() && it->inner->key() == rocksdb::Slice(it->last)) step(it);
}

}  // namespace

extern "C" {

pl_db* pl_open(const pl_options* options, const pl_slice* stores, size_t count, pl_status* status) {
  pl_db* db = nullptr;
  const int opened = guarded(status, [&] {
    db = new pl_db();
    db->options = *options;
    return open(db, stores, count, status);
  });
  if (opened == 0) return db;
  pl_status unused;
  if (db != nullptr) pl_close(db, &unused);
  return nullptr;
}

void pl_close(pl_db* db, pl_status* status) {
  guarded(status, [&] { return done(status, close(db)); });
  guarded(status, [&] {
    delete db;
    return 0;
  });
}

pl_slice pl_dropped(const pl_db* db, size_t i) {
  return i < db->dropped.size() ? slice(rocksdb::Slice(db->dropped[i])) : pl_slice{nullptr, 0};
}

int pl_get(pl_db* db, uint16_t store, pl_slice key, pl_slice* value, pl_status* status) {
  return guarded(status, [&] {
    Family* family = db->family(store, status);
    if (family == nullptr) return -1;
    rocksdb::Status s = read(db, family->handle, slice(key), true);
    if (s.IsMemoryLimit()) s = read(db, family->handle, slice(key), false);
    if (s.ok()) {
      *value = slice(t_read.value);
      return 1;
    }
    t_read.value.Reset();
    return s.IsNotFound() ? 0 : done(status, s);
  });
}

void pl_get_done(void) {
  t_read.value.Reset();
  // One huge value must not stay with the thread for good.
  if (t_read.buffer.capacity() > (64u << 10)) std::string().swap(t_read.buffer);
}

pl_iterator* pl_iterator_new(pl_db* db, uint16_t store, pl_slice from, pl_slice to, int reverse,
                             pl_status* status) {
  pl_iterator* it = nullptr;
  const int made = guarded(status, [&] {
    Family* family = db->family(store, status);
    if (family == nullptr) return -1;
    it = new pl_iterator();
    it->db = db;
    it->family = family->handle;
    it->from.assign(from.data, from.size);
    it->to.assign(to.data, to.size);
    it->lower = rocksdb::Slice(it->from);
    it->upper = rocksdb::Slice(it->to);
    it->reverse = reverse != 0;
    it->snapshot = db->db->GetSnapshot();
    db->open_iterators.fetch_add(1, std::memory_order_relaxed);
    return 0;
  });
  if (made == 0) return it;
  pl_iterator_free(it);
  return nullptr;
}

int pl_iterator_next(pl_iterator* it, pl_slice* key, pl_slice* value, pl_status* status) {
  return guarded(status, [&] {
    // A refused block ends the iterator; it goes on from the last row without filling the cache.
    for (int attempt = 0; attempt < 2; attempt++) {
      MayRefuse refuse(it->fill_cache);
      if (!it->inner || attempt > 0) {
        seek(it);
      } else if (it->started) {
        step(it);
      }
      if (it->inner->Valid()) {
        it->last.assign(it->inner->key().data(), it->inner->key().size());
        it->started = true;
        *key = slice(rocksdb::Slice(it->last));
        *value = slice(it->inner->value());
        return 1;
      }
      const rocksdb::Status s = it->inner->status();
      if (s.ok()) return 0;
      if (!s.IsMemoryLimit() || !it->fill_cache) return done(status, s);
      it->fill_cache = false;
    }
    return 0;
  });
}

void pl_iterator_free(pl_iterator* it) {
  if (it == nullptr) return;
  pl_status unused;
  guarded(&unused, [&] {
    it->inner.reset();
    if (it->snapshot != nullptr) {
      it->db->db->ReleaseSnapshot(it->snapshot);
      it->db->open_iterators.fetch_sub(1, std::memory_order_relaxed);
    }
    delete it;
    return 0;
  });
}

void pl_memory_usage(pl_db* db, pl_memory* memory) {
  pl_status unused;
  *memory = pl_memory{};
  guarded(&unused, [&] {
    memory->memtables = db->buffers->memory_usage();
    memory->memtables_active = db->buffers->mutable_memtable_memory_usage();
    memory->cache_used = db->cache->GetUsage();
    memory->cache_pinned = db->cache->GetPinnedUsage();
    memory->cache_capacity = db->cache->GetCapacity();
    memory->refused_inserts = db->cache->refused();
    memory->waits = db->waits.load(std::memory_order_relaxed);
    for (auto& family : db->families) {
      uint64_t bytes = 0;
      if (family && db->db->GetIntProperty(family->handle, rocksdb::DB::Properties::kEstimateTableReadersMem, &bytes))
        memory->table_readers += bytes;
    }
    return 0;
  });
}

void pl_set_cache_bytes(pl_db* db, uint64_t bytes) {
  pl_status unused;
  guarded(&unused, [&] {
    db->cache->SetCapacity(bytes);
    return 0;
  });
}

int pl_background_error(pl_db* db, pl_status* status) { return db->listener->stopped(status) ? -1 : 0; }

}  // extern "C"
