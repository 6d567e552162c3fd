// SPDX-License-Identifier: BSD-3-Clause
// FFTW's own parallel transform, for comparison.
#pragma once

#include <functional>
#include <optional>

#include "transform.hpp"

/// Returns the time of FFTW's MPI transform of an array of this shape, or nothing if the build does
/// not have it. Its ranks have slabs: the array is divided along axis 0 before and along axis 1
/// after the transform, so there is one exchange. Collective over the world.
/// @param time_of  Runs a function several times, and returns the time of one run.
std::optional<double> time_of_slabs(
    const Shape& shape, const std::function<double(const std::function<void()>&)>& time_of);
