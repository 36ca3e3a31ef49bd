// The state behind a pl_db: the database, its families by store number, its memory, what its background threads
// reported.
#ifndef PLIMSOLL_DATABASE_H
#define PLIMSOLL_DATABASE_H

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cache.h"
#include "rocksdb/db.h"
#include "rocksdb/listener.h"
#include "rocksdb/write_batch.h"
#include "rocksdb/write_buffer_manager.h"
#include "shim.h"

namespace plimsoll {

inline void fill(pl_status* into, const rocksdb::Status& from) {
  into->code = from.code();
  into->subcode = from.subcode();
  into->severity = from.severity();
  const std::string text = from.ToString();
  snprintf(into->message, sizeof into->message, "%s", text.c_str());
}

inline void fill(pl_status* into, int code, const char* text) {
  into->code = code;
  snprintf(into->message, sizeof into->message, "%s", text);
}

inline rocksdb::Slice slice(pl_slice s) { return rocksdb::Slice(s.data, s.size); }
inline pl_slice slice(const rocksdb::Slice& s) { return pl_slice{s.data(), s.size()}; }

inline uint64_t now_ms() {
  using namespace std::chrono;
  return static_cast<uint64_t>(duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count()) + 1;
}

// Families lie at their store's number; a number that was not opened has none (NULL). One store's family and the moment
// of its oldest unflushed write (0: everything is flushed or being flushed).
struct Family {
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  std::string name;
  std::atomic<uint64_t> dirty_since{0};
};

// Runs on RocksDB's threads and, for sealed memtables, on ours; does nothing that can fail.
class Listener final : public rocksdb::EventListener {
 public:
  explicit Listener(std::vector<std::unique_ptr<Family>>* families) : families_(families) {}

  void OnMemTableSealed(const rocksdb::MemTableInfo& info) override {
    for (auto& family : *families_)
      if (family && family->name == info.cf_name) family->dirty_since.store(0, std::memory_order_relaxed);
  }

  void OnFlushCompleted(rocksdb::DB*, const rocksdb::FlushJobInfo&) override {
    std::lock_guard<std::mutex> hold(mutex_);
    flushed_.notify_all();
  }

  void OnBackgroundError(rocksdb::BackgroundErrorReason, rocksdb::Status* error) override { note(*error); }

  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status error, bool* auto_recovery) override {
    if (error.severity() >= rocksdb::Status::kHardError) *auto_recovery = false;
  }

  void OnErrorRecoveryEnd(const rocksdb::BackgroundErrorRecoveryInfo& info) override {
    const rocksdb::Status& left = info.new_bg_error;
    // A soft error that could not be healed stops all flushes for good: as bad as a hard one.
    if (!left.ok() && !left.IsShutdownInProgress())
      note(rocksdb::Status(left, std::max(left.severity(), rocksdb::Status::kHardError)));
  }

  // Waits for the end of a flush, at most so long.
  void wait_for_flush(std::chrono::milliseconds most) {
    std::unique_lock<std::mutex> hold(mutex_);
    flushed_.wait_for(hold, most);
  }

  // Whether the database is stopped; then with the first error that stopped it.
  bool stopped(pl_status* into) {
    if (severity_.load(std::memory_order_acquire) < rocksdb::Status::kHardError) return false;
    std::lock_guard<std::mutex> hold(mutex_);
    *into = error_;
    return true;
  }

 private:
  void note(const rocksdb::Status& error) {
    if (error.severity() < rocksdb::Status::kHardError) return;
    std::lock_guard<std::mutex> hold(mutex_);
    if (severity_.load(std::memory_order_relaxed) >= error.severity()) return;
    fill(&error_, error);
    severity_.store(error.severity(), std::memory_order_release);
    flushed_.notify_all();
  }

  std::vector<std::unique_ptr<Family>>* families_;
  std::mutex mutex_;
  std::condition_variable flushed_;
  std::atomic<int> severity_{0};
  pl_status error_{};
};

}  // namespace plimsoll

struct pl_db {
  pl_options options{};
  std::vector<std::unique_ptr<plimsoll::Family>> families;
  std::vector<std::string> dropped;
  std::shared_ptr<plimsoll::Listener> listener;
  std::shared_ptr<plimsoll::GuardedCache> cache;
  std::shared_ptr<rocksdb::WriteBufferManager> buffers;
  rocksdb::ColumnFamilyHandle* unused_default = nullptr;
  std::unique_ptr<rocksdb::DB> db;

  // One write at a time: room in the memtables is checked and used under it, and one batch buffer is enough.
  std::mutex writing;
  rocksdb::WriteBatch batch;
  std::atomic<uint64_t> waits{0};
  std::atomic<int> open_iterators{0};

  plimsoll::Family* family(uint16_t store, pl_status* status) {
    if (store < families.size() && families[store]) return families[store].get();
    plimsoll::fill(status, PL_UNKNOWN_STORE, ("store number " + std::to_string(store) + " was not opened").c_str());
    return nullptr;
  }
};

struct pl_iterator {
  pl_db* db;
  rocksdb::ColumnFamilyHandle* family;
  const rocksdb::Snapshot* snapshot;
  std::string from;
  std::string to;
  rocksdb::Slice lower;
  rocksdb::Slice upper;
  bool reverse;
  std::string last;
  bool started = false;
  bool fill_cache = true;
  std::unique_ptr<rocksdb::Iterator> inner;
};

namespace plimsoll {

// Runs a call that may throw; its answer, or -1 with the exception as status.
template <typename Call>
int guarded(pl_status* status, Call call) noexcept {
  try {
    return call();
  } catch (const std::exception& e) {
    fill(status, PL_EXCEPTION, e.what());
  } catch (...) {
    fill(status, PL_EXCEPTION, "unknown C++ exception");
  }
  return -1;
}

inline int done(pl_status* status, const rocksdb::Status& s) {
  if (s.ok()) return 0;
  fill(status, s);
  return -1;
}

}  // namespace plimsoll
#endif
