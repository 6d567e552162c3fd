// SPDX-License-Identifier: BSD-3-Clause
// Symbol visibility. The library exports only the symbols that are marked with RANKMESH_API. This
// header also defines the mark of functions that programs must not call.
#pragma once

#define RANKMESH_API __attribute__((visibility("default")))

// Marks a function. A call of the function is a compile-time error with this text. On templates,
// clang would print the text of the attribute `unavailable` twice. From clang 18 on, -Wgcc-compat
// warns of every attribute that gcc does not have.
#ifdef __clang__
#define RANKMESH_REFUSE(text)                                                           \
  _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wgcc-compat\"") \
      __attribute__((diagnose_if(true, text, "error"))) _Pragma("clang diagnostic pop")
#else
#define RANKMESH_REFUSE(text) __attribute__((unavailable(text)))
#endif
