// CacheImpl and BatchImpl: the state behind Cache and Batch, shared with attention.
//
// A batch works on copies of the sequences it extends, with new blocks that belong to it; Commit
// swaps them in, Abort gives the blocks back. Nothing that a reader of the old state uses changes
// before Commit.
// Thread-safety: as Cache and Batch (shorthand/cache.h).
#ifndef SHORTHAND_CACHE_CACHE_IMPL_H_
#define SHORTHAND_CACHE_CACHE_IMPL_H_

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/arena.h"
#include "cache/block.h"
#include "shorthand/cache.h"

namespace shorthand {

// Where a model's layer keeps its keys and values.
struct LayerPlace {
  int group = -1;  // -1: the layer keeps none
  int index = 0;   // within the group
  bool owner = true;
};

class CacheImpl {
 public:
  CacheImpl(Shape shape, Recipe recipe, CacheOptions options, std::vector<LayerGroup> groups);

  SequenceId Create();
  Result<SequenceId> Fork(SequenceId id);
  Status Crop(SequenceId id, int64_t tokens);
  Status Release(SequenceId id);
  Result<const Sequence*> Find(SequenceId id) const;
  Result<std::unique_ptr<BatchImpl>> Begin(std::span<const BatchItem> items);
  CacheStats Stats() const;

  const Shape& shape() const { return shape_; }
  const Recipe& recipe() const { return recipe_; }
  const std::vector<GroupStore>& stores() const { return stores_; }
  std::vector<GroupStore>& stores() { return stores_; }
  // REQUIRES: 0 <= layer < layers of the shape.
  const LayerPlace& place(int layer) const { return places_[layer]; }
  const LayerFormat& format(const LayerPlace& place) const {
    return stores_[place.group].group().layers[place.index];
  }

 private:
  friend class BatchImpl;
  Status CheckItems(std::span<const BatchItem> items) const;
  Status ReserveFor(std::span<const BatchItem> items);
  bool Openable(const Sequence& sequence) const;
  Status CheckWindow(const Sequence& sequence, int64_t tokens) const;
  void Forget(Sequence& sequence, size_t first_entry);

  Shape shape_;
  Recipe recipe_;
  CacheOptions options_;
  std::vector<LayerGroup> groups_;  // as the stores have them: what the footprint functions take
  Arena arena_;
  std::vector<GroupStore> stores_;
  std::vector<LayerPlace> places_;  // [layer]
  std::map<SequenceId, Sequence> sequences_;
  SequenceId next_id_ = 0;
  bool batch_open_ = false;
};

class BatchImpl {
 public:
  struct Item {
    SequenceId id;
    Sequence next;  // as it will be after Commit
    int64_t first_position;
    int first_row;
    int tokens;
  };
  struct Row {
    int item;
    int entry;  // in the item's sequence
    int slot;   // in the entry's page
  };
  struct SealJob {
    BlockId block;
    int64_t first_position;
    int first_token;  // sinks before it are kept apart
  };

  BatchImpl(CacheImpl* cache, std::span<const BatchItem> items);
  ~BatchImpl();

  void Write(int layer, const float* k, const float* v, int worker, int workers);
  void Seal(int layer, int worker, int workers);
  Status Commit();
  void Abort();

  Status status() const;
  void Fail(Status status);  // the first one stays

  const CacheImpl& cache() const { return *cache_; }
  const std::vector<Item>& items() const { return items_; }
  const std::vector<Row>& rows() const { return rows_; }
  int64_t Position(const Row& row) const {
    return items_[row.item].next.entries[row.entry].start + row.slot;
  }

 private:
  int RunOfRows(int first, int end) const;
  void Extend(Item& item);
  void OpenLastEntry(Item& item);
  void AddEntry(Item& item);
  void CompleteEntry(const Item& item, int entry);
  void DropUnneeded(Sequence& sequence);

  CacheImpl* cache_;
  std::vector<Item> items_;
  std::vector<Row> rows_;
  std::vector<std::vector<SealJob>> seal_jobs_;                // [group]
  std::vector<std::vector<BlockId>> new_blocks_;               // [group]
  std::vector<std::vector<BlockId>> newly_sealed_old_blocks_;  // [group]
  bool open_ = true;
  mutable std::mutex mutex_;
  Status status_;  // guarded by mutex_
};

}  // namespace shorthand

#endif  // SHORTHAND_CACHE_CACHE_IMPL_H_
