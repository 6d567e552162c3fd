// SPDX-License-Identifier: BSD-3-Clause
// What gpt_test does: each is in the file of its name. The first of its arguments is its own name.
#pragma once

int gradients(int argc, char** argv);
int meshes(int argc, char** argv);
int survive(int argc, char** argv);
