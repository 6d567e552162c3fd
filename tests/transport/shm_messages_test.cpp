// SPDX-License-Identifier: BSD-3-Clause
// Tests the protocol of messages in shared memory between the threads of one process: random
// messages to random members with several tags and sizes, received in another order than they were
// sent. Every message must arrive whole, and in the order of its tag; large messages must be
// announced in the same order. The test is built a second time with ThreadSanitizer.
//
//   test_shm_messages [MEMBERS MESSAGES [SEED]]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "transport/shm/messages.hpp"

using namespace rankmesh;

namespace {

constexpr int tags = 3;

// Bytes of one message. All members know the sizes and values of all messages.
struct Plan {
  std::size_t bytes(int from, int to, std::uint64_t number) const {
    std::mt19937_64 random{seed + number * 1000003U + static_cast<unsigned>(from * 64 + to)};
    const std::size_t sizes[] = {0, 1, 8, 96, 97, 1000, 32768, 32769, 200000};
    return sizes[random() % (random() % 4 == 0 ? 9 : 7)];
  }
  [[nodiscard]] int tag(int from, int to, std::uint64_t number) const {
    return static_cast<int>((number * 7 + static_cast<unsigned>(from + to) + seed) % 5 % tags);
  }
  static std::byte value(int from, std::uint64_t number, std::size_t i) {
    return static_cast<std::byte>(static_cast<unsigned>(from) * 31 + number * 7 + i);
  }
  unsigned seed;
};

struct Memory {
  explicit Memory(int n)
      : members{n}, bytes(static_cast<std::size_t>(n * n) * shm::Ring::size() + shm::line) {}
  shm::Ring ring(int from, int to) {
    auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
    const std::size_t skip = (shm::line - address % shm::line) % shm::line;
    return shm::Ring{bytes.data() + skip +
                     static_cast<std::size_t>(to * members + from) * shm::Ring::size()};
  }
  int members;
  std::vector<std::byte> bytes;
};

// A message of this member with its memory.
struct Half {
  shm::Message message;
  std::vector<std::byte> memory;
  int peer;
  std::uint64_t number;
};

class Member {
 public:
  Member(Memory& memory, int self, Plan plan, std::uint64_t count)
      : n_{memory.members}, self_{self}, plan_{plan}, count_{count}, random_{plan.seed + 9} {
    std::vector<shm::Ring> to, from;
    for (int k = 0; k < n_; ++k) {
      to.push_back(memory.ring(self, k));
      from.push_back(memory.ring(k, self));
    }
    messages_ = std::make_unique<shm::Messages>(to, from);
    sent_.resize(static_cast<std::size_t>(n_));
    // What it receives from each member: by tag, so not in the order in which it is sent.
    for (int from_member = 0; from_member < n_; ++from_member)
      for (std::uint64_t begin = 0; begin < count; begin += 8)
        for (int tag = tags - 1; tag >= 0; --tag)
          for (std::uint64_t i = begin; i < std::min(count, begin + 8); ++i)
            if (plan.tag(from_member, self, i) == tag) receives_.push_back({from_member, i});
    // Receives from different members take turns.
    std::stable_sort(receives_.begin(), receives_.end(),
                     [](const auto& a, const auto& b) { return a.second / 8 < b.second / 8; });
  }

  void run() {
    std::deque<std::unique_ptr<Half>> sending, receiving;
    std::size_t next = 0;
    while (next < receives_.size() || !sending.empty() || !receiving.empty() || is_sending()) {
      if (is_sending() && sending.size() < 12) send(sending);
      if (next < receives_.size() && receiving.size() < 6) receive(receiving, receives_[next++]);
      if (random_() % 3 == 0) messages_->advance();
      if (random_() % 16 == 0) messages_->make_space();
      std::erase_if(sending, [](const auto& half) { return half->message.is_complete; });
      std::erase_if(receiving, [&](const auto& half) { return has_ended(*half); });
      std::this_thread::yield();
    }
  }
  [[nodiscard]] std::uint64_t wrong() const { return wrong_; }

 private:
  [[nodiscard]] bool is_sending() const {
    for (const std::uint64_t sent : sent_)
      if (sent < count_) return true;
    return false;
  }
  std::unique_ptr<Half> half(int peer, std::uint64_t number, int from, int to) {
    auto result =
        std::make_unique<Half>(Half{.message = {}, .memory = {}, .peer = peer, .number = number});
    const std::size_t bytes = plan_.bytes(from, to, number);
    if (shm::Ring::carries(bytes)) result->memory.resize(bytes);
    result->message.peer = static_cast<std::size_t>(peer);
    result->message.envelope = {static_cast<std::int64_t>(bytes), plan_.tag(from, to, number),
                                DataType::uint8};
    return result;
  }
  void send(std::deque<std::unique_ptr<Half>>& sending) {
    int to = static_cast<int>(random_() % static_cast<unsigned>(n_));
    while (sent_[static_cast<std::size_t>(to)] == count_) to = (to + 1) % n_;
    const std::uint64_t number = sent_[static_cast<std::size_t>(to)]++;
    auto one = half(to, number, self_, to);
    for (std::size_t i = 0; i < one->memory.size(); ++i)
      one->memory[i] = Plan::value(self_, number, i);
    one->message.source = one->memory.data();
    if (random_() % 2 == 0 && messages_->try_send(one->message)) {
      std::fill(one->memory.begin(), one->memory.end(), std::byte{0});  // it may change now
      return;
    }
    sending.push_back(std::move(one));
    messages_->begin_send(sending.back()->message);
  }
  void receive(std::deque<std::unique_ptr<Half>>& receiving,
               const std::pair<int, std::uint64_t>& which) {
    auto one = half(which.first, which.second, which.first, self_);
    one->message.target = one->memory.data();
    receiving.push_back(std::move(one));
    shm::Message& message = receiving.back()->message;
    if (random_() % 2 == 0 && messages_->try_receive(message)) return;
    messages_->begin_receive(message);
  }
  bool has_ended(const Half& half) {
    if (!half.message.is_complete) return false;
    bool is_right = !half.message.wrong;
    for (std::size_t i = 0; i < half.memory.size(); ++i)
      is_right = is_right && half.memory[i] == Plan::value(half.peer, half.number, i);
    if (!is_right && ++wrong_ == 1)
      std::fprintf(stderr, "member %d: message %llu from %d is wrong\n", self_,
                   static_cast<unsigned long long>(half.number), half.peer);
    return true;
  }

  int n_, self_;
  Plan plan_;
  std::uint64_t count_;
  std::mt19937 random_;
  std::unique_ptr<shm::Messages> messages_;
  std::vector<std::uint64_t> sent_;
  std::vector<std::pair<int, std::uint64_t>> receives_;
  std::uint64_t wrong_ = 0;
};

bool run(int members, std::uint64_t count, unsigned seed) {
  Memory memory{members};
  std::vector<std::thread> threads;
  std::vector<std::uint64_t> wrong(static_cast<std::size_t>(members));
  for (int k = 0; k < members; ++k)
    threads.emplace_back([&, k] {
      Member member{memory, k, {seed}, count};
      member.run();
      wrong[static_cast<std::size_t>(k)] = member.wrong();
    });
  for (auto& thread : threads) thread.join();
  std::uint64_t all = 0;
  for (const std::uint64_t one : wrong) all += one;
  std::printf("%d members, %llu messages each, seed %u: %llu wrong\n", members,
              static_cast<unsigned long long>(count), seed, static_cast<unsigned long long>(all));
  return all == 0;
}

bool fail(const char* text) {
  std::fprintf(stderr, "FAILED: %s\n", text);
  return false;
}

// The order of matching, without other threads: one member sends to itself.
bool check_matching() {
  Memory memory{1};
  shm::Messages messages{{memory.ring(0, 0)}, {memory.ring(0, 0)}};
  std::vector<std::int32_t> values(6);
  const auto send = [&](std::int32_t value, int tag) {
    const shm::Message message{.peer = 0,
                               .envelope = {1, tag, DataType::int32},
                               .source = reinterpret_cast<const std::byte*>(&value)};
    return messages.try_send(message);
  };
  const auto receive = [&](std::int32_t& to, int tag, DataType type = DataType::int32) {
    return std::make_unique<shm::Message>(shm::Message{
        .peer = 0, .envelope = {1, tag, type}, .target = reinterpret_cast<std::byte*>(&to)});
  };
  auto first = receive(values[0], 1), second = receive(values[1], 1), other = receive(values[2], 2);
  messages.begin_receive(*first);
  messages.begin_receive(*second);
  if (!send(20, 2) || !send(10, 1) || !send(11, 1)) return fail("there is no space");
  if (messages.arrived(0, 1)) return fail("a message that a receive has taken was probed");
  if (messages.arrived(0, 2) != 4) return fail("a message that has arrived was not probed");
  messages.begin_receive(*other);
  if (!first->is_complete || !second->is_complete || !other->is_complete || values[0] != 10 ||
      values[1] != 11 || values[2] != 20)
    return fail("messages were matched in the wrong order");
  // A receive that was cancelled takes no message.
  auto cancelled = receive(values[3], 1), next = receive(values[4], 1);
  messages.begin_receive(*cancelled);
  messages.begin_receive(*next);
  if (!messages.cancel(*cancelled) || !send(12, 1)) return fail("a receive cannot be cancelled");
  messages.advance();
  if (!next->is_complete || values[4] != 12 || messages.cancel(*next))
    return fail("a message went to a receive that was cancelled");
  // Another type: the receive ends, and the next one gets the next message.
  auto wrong = receive(values[5], 1, DataType::float32);
  if (!send(13, 1) || !send(14, 1) || messages.try_receive(*wrong))
    return fail("a message of another type was taken");
  messages.begin_receive(*wrong);
  auto right = receive(values[5], 1);
  if (!wrong->is_complete || !wrong->wrong || !messages.try_receive(*right) || values[5] != 14)
    return fail("a message of another type was not reported");
  // More messages than there is space for.
  int sent = 0;
  while (send(sent, 5)) ++sent;
  if (sent != static_cast<int>(shm::Ring::entries)) return fail("the ring has another size");
  messages.make_space();
  if (!send(sent++, 5)) return fail("there is no space after messages were taken out");
  for (int i = 0; i < sent; ++i) {
    auto one = receive(values[0], 5);
    messages.begin_receive(*one);
    if (!one->is_complete || values[0] != i) return fail("a message was lost");
  }
  return true;
}

// Messages that the ring only announces: their order, and what a receive of another size finds.
bool check_announcements() {
  Memory memory{1};
  shm::Messages messages{{memory.ring(0, 0)}, {memory.ring(0, 0)}};
  std::byte bytes[3] = {};
  const auto message = [&](std::int64_t count, int tag) {
    return std::make_unique<shm::Message>(
        shm::Message{.peer = 0, .envelope = {count, tag, DataType::uint8}, .source = bytes});
  };
  const auto large = message(50000, 1), longer = message(60000, 1), small = message(3, 1);
  if (!messages.try_send(*large) || !messages.try_send(*longer)) return fail("there is no space");
  if (messages.arrived(0, 1) != 50000) return fail("an announcement was not probed");
  const auto first = message(50000, 1), second = message(59999, 1), third = message(50000, 1);
  messages.begin_receive(*first);
  if (!first->is_complete || first->wrong) return fail("an announcement has no receive");
  // Its receive was cancelled in MPI, so the next one gets the message.
  messages.put_back(*first);
  messages.begin_receive(*third);
  messages.begin_receive(*second);
  if (!third->is_complete || third->wrong || !second->wrong || second->wrong->count != 60000)
    return fail("announcements were matched in the wrong order");
  if (messages.crossing()) return fail("two large messages do not cross");
  if (!messages.try_send(*small)) return fail("there is no space");
  const auto fourth = message(50000, 1);
  messages.begin_receive(*fourth);
  return (messages.crossing() && messages.crossing()->sent.count == 3 &&
          messages.crossing()->expected.count == 50000) ||
         fail("a small message for a large receive was not found");
}

}  // namespace

int main(int argc, char** argv) {
  bool good = check_matching() && check_announcements();
  if (argc > 2)
    return run(std::atoi(argv[1]), std::strtoull(argv[2], nullptr, 10),
               argc > 3 ? static_cast<unsigned>(std::atoi(argv[3])) : 1) &&
                   good
               ? 0
               : 1;
  for (const int members : {1, 2, 3, 5})
    for (const unsigned seed : {10U, 11U}) good = run(members, 100, seed) && good;
  return good ? 0 : 1;
}
