// SPDX-License-Identifier: BSD-3-Clause
// Libraries of older versions lack functions, as dlsym sees them.
#include <doctest/doctest.h>

#include <dlfcn.h>

#include <string>

TEST_CASE("each variant offers what its version has, and no more") {
  struct Variant {
    const char* path;
    int version;
    bool alloc, scalable, window, all_to_all;
  };
  const Variant variants[] = {
      {FAKE_NCCL_2_18, 21805, false, false, false, false},
      {FAKE_NCCL_2_22, 22203, true, false, false, false},
      {FAKE_NCCL_2_26, 22605, true, true, false, false},
      {FAKE_NCCL_2_28, 22809, true, true, true, true},
  };
  for (const Variant& variant : variants) {
    CAPTURE(variant.path);
    void* const library = dlopen(variant.path, RTLD_NOW | RTLD_LOCAL);
    REQUIRE_MESSAGE(library != nullptr, dlerror());
    int version = 0;
    const auto get_version = reinterpret_cast<int (*)(int*)>(dlsym(library, "ncclGetVersion"));
    REQUIRE((get_version != nullptr));
    CHECK(get_version(&version) == 0);
    CHECK(version == variant.version);
    const auto has = [&](const char* name) { return dlsym(library, name) != nullptr; };
    CHECK(has("ncclCommSplit"));
    CHECK(has("fake_nccl_counters"));
    CHECK(has("ncclMemAlloc") == variant.alloc);
    CHECK(has("ncclCommInitRankScalable") == variant.scalable);
    CHECK(has("ncclCommWindowRegister") == variant.window);
    CHECK(has("ncclCommShrink") == variant.window);
    CHECK(has("ncclAlltoAll") == variant.all_to_all);
    CHECK_FALSE(has("fake_nccl_objects"));
  }
}
