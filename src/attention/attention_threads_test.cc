// One KV head, eight threads, every stage shared: what ThreadSanitizer looks at.
#include <gtest/gtest.h>

#include <barrier>
#include <thread>

#include "cache/testing.h"

namespace shorthand {
namespace {

// As TestModel::Forward, with real threads and a barrier between the stages.
std::vector<float> ForwardOnThreads(const TestModel& model, Cache& cache,
                                    const std::vector<TestModel::Item>& items, int workers) {
  auto batch = model.BeginBatch(cache, items);
  auto plan = *AttentionPlan::Create(*batch);
  const int layers = static_cast<int>(model.shape().layers.size());
  std::vector<std::vector<float>> k, v, q, out;
  for (int l = 0; l < layers; ++l) {
    k.push_back(model.Rows(TestModel::kKey, *batch, items, l));
    v.push_back(model.Rows(TestModel::kValue, *batch, items, l));
    q.push_back(model.Rows(TestModel::kQuery, *batch, items, l));
    out.emplace_back(q.back().size());
  }
  std::barrier stage(workers);
  std::vector<std::thread> threads;
  for (int w = 0; w < workers; ++w) {
    threads.emplace_back([&, w] {
      for (int l = 0; l < layers; ++l) {
        batch->Write(l, k[l].data(), v[l].data(), w, workers);
        stage.arrive_and_wait();
        batch->Seal(l, w, workers);
        stage.arrive_and_wait();
        plan->Run({l, q[l].data(), out[l].data(), nullptr}, w, workers);
        stage.arrive_and_wait();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(batch->Commit().ok());
  std::vector<float> all;
  for (const std::vector<float>& o : out) all.insert(all.end(), o.begin(), o.end());
  return all;
}

TEST(AttentionThreads, OneHeadEightThreadsSameBits) {
  const TestModel model(TestShape(2, 1, 4, 64));
  for (const char* recipe : {"f16", "k=u4/ch,v=had:lm4/tok,sink=4,recent=128"}) {
    auto threaded = OpenCache(model.shape(), recipe);
    auto plain = OpenCache(model.shape(), recipe);
    const SequenceId t = threaded->Create(), p = plain->Create();
    for (int tokens : {1500, 1, 1, 8, 33, 1, 1, 200, 1}) {
      const std::vector<int> text = Text(tokens, tokens);
      EXPECT_TRUE(ForwardOnThreads(model, *threaded, {{t, text}}, 8) ==
                  model.Forward(*plain, {{p, text}}))
          << recipe << ", " << tokens << " tokens";
    }
  }
}

}  // namespace
}  // namespace shorthand
