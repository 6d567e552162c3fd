// SPDX-License-Identifier: BSD-3-Clause
// Symbol visibility. The library exports only the symbols that are marked with RANKMESH_API.
// Also marks functions that programs must not call.
#pragma once

#define RANKMESH_API __attribute__((visibility("default")))

// Marks a function whose call is an error with this text. clang would print `unavailable` of a
// template twice; from clang 18 on, it warns of every attribute that gcc does not have.
#ifdef __clang__
#define RANKMESH_REFUSE(text)                                                           \
  _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wgcc-compat\"") \
      __attribute__((diagnose_if(true, text, "error"))) _Pragma("clang diagnostic pop")
#else
#define RANKMESH_REFUSE(text) __attribute__((unavailable(text)))
#endif
