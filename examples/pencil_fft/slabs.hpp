// SPDX-License-Identifier: BSD-3-Clause
// FFTW's own parallel transform, for comparison.
#pragma once

#include <functional>

#include "box.hpp"

/// Prepares FFTW's MPI transform of an array of this shape, and returns a function that runs it.
/// Returns an empty function if the build does not have FFTW's MPI library. The ranks have slabs:
/// the array is divided along axis 0 before and along axis 1 after the transform, so there is one
/// exchange. This function and the returned one are collective over the world.
std::function<void()> slab_transform(const Shape& shape);
