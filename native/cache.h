// The block cache: RocksDB's LRU with our allocator, guarded.
//
// A strict cache would turn a full cache into a failed flush and a database that is read-only for good. So the cache is
// not strict; instead an insert is refused on our own reading threads, and only there, when pinned blocks leave no room
// for it. The read is then repeated without filling the cache. RocksDB's own threads are never refused.
#ifndef PLIMSOLL_CACHE_H
#define PLIMSOLL_CACHE_H

#include <atomic>
#include <memory>
#include <new>

#include "rocksdb/advanced_cache.h"
#include "rocksdb/cache.h"
#include "rocksdb/memory_allocator.h"
#include "shim.h"

namespace plimsoll {

// Whether inserts of this thread may be refused: set around our reads.
inline thread_local bool t_may_refuse = false;

class MayRefuse {
 public:
  explicit MayRefuse(bool on) : before_(t_may_refuse) { t_may_refuse = on; }
  ~MayRefuse() { t_may_refuse = before_; }
  MayRefuse(const MayRefuse&) = delete;
  MayRefuse& operator=(const MayRefuse&) = delete;

 private:
  bool before_;
};

// Blocks of the cache in the module that owns them.
class BlockAllocator final : public rocksdb::MemoryAllocator {
 public:
  explicit BlockAllocator(const pl_allocator& functions) : functions_(functions) {}
  const char* Name() const override { return "plimsoll.BlockAllocator"; }
  void* Allocate(size_t size) override {
    void* block = functions_.allocate(size);
    if (block == nullptr) throw std::bad_alloc();
    return block;
  }
  void Deallocate(void* block) override { functions_.deallocate(block); }
  size_t UsableSize(void* block, size_t requested) const override { return functions_.usable_size(block, requested); }

 private:
  pl_allocator functions_;
};

class GuardedCache final : public rocksdb::CacheWrapper {
 public:
  // The wrapper answers for the allocator itself: without it RocksDB would allocate blocks as any other memory.
  GuardedCache(std::shared_ptr<rocksdb::Cache> target, std::shared_ptr<rocksdb::MemoryAllocator> allocator,
               const pl_allocator& functions)
      : CacheWrapper(std::move(target)), inside_(functions.inside) {
    memory_allocator_ = std::move(allocator);
  }
  const char* Name() const override { return "plimsoll.GuardedCache"; }

  rocksdb::Status Insert(const rocksdb::Slice& key, ObjectPtr value, const CacheItemHelper* helper, size_t charge,
                         Handle** handle, Priority priority, const rocksdb::Slice& compressed,
                         rocksdb::CompressionType type) override {
    // Without a handle the LRU drops what does not fit; with one it would exceed its capacity.
    if (t_may_refuse && handle != nullptr && target_->GetPinnedUsage() + charge > target_->GetCapacity()) {
      refused_.fetch_add(1, std::memory_order_relaxed);
      return rocksdb::Status::MemoryLimit("block cache is full of pinned blocks");
    }
    // The cache's own handles and tables are a fifth of a cache of small blocks: they belong to it.
    rocksdb::Status status;
    auto insert = [&] { status = target_->Insert(key, value, helper, charge, handle, priority, compressed, type); };
    inside_([](void* call) { (*static_cast<decltype(insert)*>(call))(); }, &insert);
    return status;
  }

  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  void (*inside_)(void (*)(void*), void*);
  std::atomic<uint64_t> refused_{0};
};

inline std::shared_ptr<GuardedCache> make_cache(uint64_t bytes, const pl_allocator& functions) {
  rocksdb::LRUCacheOptions options;
  options.capacity = bytes;
  // A shard must hold many blocks: at least 4 MiB each, at most 16.
  options.num_shard_bits = 0;
  while (options.num_shard_bits < 4 && (bytes >> (options.num_shard_bits + 1)) >= (4u << 20)) options.num_shard_bits++;
  options.strict_capacity_limit = false;
  options.memory_allocator = std::make_shared<BlockAllocator>(functions);
  return std::make_shared<GuardedCache>(options.MakeSharedCache(), options.memory_allocator, functions);
}

}  // namespace plimsoll
#endif
