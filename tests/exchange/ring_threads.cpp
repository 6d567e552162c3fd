// SPDX-License-Identifier: BSD-3-Clause
// The control queue's protocol over threads, so that ThreadSanitizer sees both sides of it: a
// writer and 1 to 7 readers, messages of all lengths, small rings.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "exchange/detail/message_ring.hpp"

using rankmesh::exchange::detail::MessageRing;
using rankmesh::exchange::detail::ring_line;

namespace {

constexpr std::uint64_t messages = 150000;

std::size_t length_of(std::uint64_t message) {
  return message % 11 == 0 ? message % 1500 : message % 40;
}
std::byte byte_of(std::uint64_t message, std::size_t i) {
  return static_cast<std::byte>(message * 31 + i);
}

void fail(const char* what, std::uint64_t message) {
  std::fprintf(stderr, "message %llu: %s\n", static_cast<unsigned long long>(message), what);
  std::exit(1);
}

void write(MessageRing& ring, std::uint64_t count) {
  std::uint64_t chunk = 0;
  for (std::uint64_t m = 0; m < count; ++m) {
    std::vector<std::byte> message(length_of(m));
    for (std::size_t i = 0; i < message.size(); ++i) message[i] = byte_of(m, i);
    for (std::uint64_t k = 0; k < ring.chunks_of(message.size()); ++k) {
      while (!ring.may_write(chunk)) std::this_thread::yield();
      ring.write(chunk++, message, k);
    }
  }
}

void read(MessageRing& ring, std::size_t reader, std::uint64_t count) {
  std::uint64_t chunk = 0;
  for (std::uint64_t m = 0; m < count; ++m) {
    while (!ring.is_written(chunk)) std::this_thread::yield();
    std::vector<std::byte> message(ring.message_bytes(chunk));
    if (message.size() != length_of(m)) fail("another length", m);
    for (std::uint64_t k = 0; k < ring.chunks_of(message.size()); ++k) {
      while (!ring.is_written(chunk)) std::this_thread::yield();
      ring.read(chunk++, message, k, reader);
    }
    for (std::size_t i = 0; i < message.size(); ++i)
      if (message[i] != byte_of(m, i)) fail("another byte", m);
  }
}

void expect(bool is, const char* what) {
  if (is) return;
  std::fprintf(stderr, "the ring's limit: %s\n", what);
  std::exit(1);
}

// A ring of two slots, message by message: the writer is as many chunks ahead of the slowest reader
// as there are slots, and no more.
void check_limit() {
  alignas(ring_line) static std::byte memory[4096];
  MessageRing ring{memory, 2, 2, 64};
  std::byte byte{7};
  const auto write_one = [&](std::uint64_t i) { ring.write(i, {&byte, 1}, 0); };
  const auto read_one = [&](std::uint64_t i, std::size_t reader) {
    std::byte got{};
    ring.read(i, {&got, 1}, 0, reader);
    expect(got == byte, "another byte was read");
  };
  expect(!ring.is_written(0), "an empty ring has a message");
  expect(ring.may_write(0) && ring.may_write(1), "an empty ring takes fewer messages than slots");
  expect(!ring.may_write(2), "an empty ring takes more messages than slots");
  write_one(0);
  write_one(1);
  expect(ring.is_written(0) && ring.is_written(1), "a written message is not seen");
  expect(!ring.is_written(2), "a message that was not written is seen");
  expect(!ring.may_write(2), "a message that nobody has read may be overwritten");
  read_one(0, 0);
  expect(!ring.may_write(2), "a message that one of two readers has read may be overwritten");
  read_one(0, 1);
  expect(ring.may_write(2), "a message that all have read keeps its slot");
  expect(!ring.may_write(3), "the slot after the one that is free may be overwritten");
  write_one(2);
  expect(ring.is_written(2) && !ring.is_written(0), "a slot has the number of an old message");
  read_one(1, 0);
  read_one(2, 0);
  read_one(1, 1);
  expect(ring.may_write(3) && !ring.may_write(4), "the slower reader does not set the limit");
}

}  // namespace

int main() {
  check_limit();
  for (const std::size_t readers : {1, 2, 7}) {
    const std::size_t slots = readers == 2 ? 1 : 8;
    const std::uint64_t count = messages / (readers + 1);
    std::vector<std::byte> memory(MessageRing::bytes(readers, slots, 256) + ring_line);
    void* begin = memory.data();
    std::size_t space = memory.size();
    auto* aligned = static_cast<std::byte*>(std::align(ring_line, ring_line, begin, space));
    // Each thread has its own view, as each process would.
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r < readers; ++r)
      threads.emplace_back([=] {
        MessageRing ring{aligned, readers, slots, 256};
        read(ring, r, count);
      });
    MessageRing ring{aligned, readers, slots, 256};
    write(ring, count);
    for (std::thread& thread : threads) thread.join();
    std::printf("%zu readers: %llu messages\n", readers, static_cast<unsigned long long>(count));
  }
}
