// The part of RocksDB that Plimsoll uses, as C functions over plain data. Called only by src/ffi/rocks*.rs, whose
// declarations mirror these one for one.
//
// No function throws or aborts: each catches what RocksDB may throw and fills a status. Strings and slices that come
// back belong to the shim and live as long as the comment at the function says.
#ifndef PLIMSOLL_SHIM_H
#define PLIMSOLL_SHIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Outcome of a call. `code` is rocksdb::Status::Code, or one of our own below; `message` ends with a zero byte.
typedef struct {
  int32_t code;
  int32_t subcode;
  int32_t severity;
  uint64_t found;     // PL_WRONG_OPTION, PL_STALLED: the value found, the bytes in use
  uint64_t expected;  // PL_WRONG_OPTION, PL_STALLED: the value asked for, the bytes of the row
  char message[256];
} pl_status;

enum {
  PL_EXCEPTION = 100,     // a C++ exception, its text in the message
  PL_WRONG_OPTION = 101,  // an option differs after open; the message is its name
  PL_STALLED = 102,       // no room in the memtables until the deadline
  PL_UNKNOWN_STORE = 103,
  PL_BAD_BATCH = 104,
};

typedef struct {
  const char* data;
  size_t size;
} pl_slice;

// Memory of the block cache: both functions must be callable from any thread; allocate returns NULL when out of memory.
typedef struct {
  void* (*allocate)(size_t size);
  void (*deallocate)(void* block);
  size_t (*usable_size)(void* block, size_t requested);
  // Runs a call whose allocations belong to the cache.
  void (*inside)(void (*call)(void*), void* argument);
} pl_allocator;

typedef struct {
  pl_slice path;
  pl_allocator cache_allocator;
  uint64_t cache_bytes;
  uint64_t memtable_bytes;       // bound of all memtables together, those being flushed included
  uint64_t batch_bytes;          // largest batch of operations
  uint64_t target_file_bytes;
  uint64_t bytes_per_sync;
  uint64_t compaction_buffer_bytes;  // readahead of one input, buffer of the output
  uint64_t stall_deadline_ms;    // how long a write may wait for room
  int32_t max_open_files;
  int32_t max_background_jobs;
} pl_options;

typedef struct {
  uint64_t memtables;            // bytes of all memtables
  uint64_t memtables_active;     // of those that are written to
  uint64_t cache_used;
  uint64_t cache_pinned;
  uint64_t cache_capacity;
  uint64_t table_readers;        // estimate, outside the cache
  uint64_t refused_inserts;      // reads that the full cache turned away and that were repeated without it
  uint64_t waits;                // writes that waited for room
} pl_memory;

typedef struct pl_db pl_db;
typedef struct pl_iterator pl_iterator;

// Opens the database with one column family a name; the store's number is its position. An empty name is a number
// without family. Families that are not named are dropped. NULL on error.
pl_db* pl_open(const pl_options* options, const pl_slice* stores, size_t count, pl_status* status);
// Flushes what is not flushed yet and closes. All iterators must be freed before.
void pl_close(pl_db* db, pl_status* status);
// Name of the i-th dropped family; size 0 behind the last. Lives as long as the database.
pl_slice pl_dropped(const pl_db* db, size_t i);

// 1 found, 0 not found, -1 error. The value lives until pl_get_done on the same thread, which every found value needs.
int pl_get(pl_db* db, uint16_t store, pl_slice key, pl_slice* value, pl_status* status);
void pl_get_done(void);

// Applies operations in the form of a StoreBatch (see src/store/batch.rs), all or none, after waiting for room.
int pl_write(pl_db* db, pl_slice operations, pl_status* status);

// Rows in [from, to) as they are now, the last one first if reverse is not 0. NULL on error.
pl_iterator* pl_iterator_new(pl_db* db, uint16_t store, pl_slice from, pl_slice to, int reverse, pl_status* status);
// 1 and the next row in that order, 0 at the end, -1 error. Key and value live until the next call.
int pl_iterator_next(pl_iterator* iterator, pl_slice* key, pl_slice* value, pl_status* status);
void pl_iterator_free(pl_iterator* iterator);

// Flushes one store and waits.
int pl_flush(pl_db* db, uint16_t store, pl_status* status);
// Starts the flush of each store whose oldest unflushed write is at least this old; returns how many, -1 on error.
int pl_flush_older_than(pl_db* db, uint64_t age_ms, pl_status* status);
// Starts the flush of the store with the largest memtable; 1 started, 0 nothing to flush, -1 error.
int pl_flush_largest(pl_db* db, pl_status* status);
// Deletes the files that lie wholly in [from, to). Durable at once, unlike a range tombstone.
int pl_delete_files(pl_db* db, uint16_t store, pl_slice from, pl_slice to, pl_status* status);
// Hides the rows in [from, to) under a range tombstone.
int pl_delete_range(pl_db* db, uint16_t store, pl_slice from, pl_slice to, pl_status* status);

// Merges all files of a store and waits; for tests that need rows below level 0.
int pl_compact(pl_db* db, uint16_t store, pl_status* status);

void pl_memory_usage(pl_db* db, pl_memory* memory);
void pl_set_cache_bytes(pl_db* db, uint64_t bytes);
// 0, or -1 with the background error that stopped the database.
int pl_background_error(pl_db* db, pl_status* status);

#ifdef __cplusplus
}
#endif
#endif
