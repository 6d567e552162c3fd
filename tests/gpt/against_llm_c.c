// SPDX-License-Identifier: BSD-3-Clause
// against_llm_c NUMBERS: compares what tests/gpt/numbers.hpp has written with what the functions of
// llm.c (train_gpt2.c) compute from the same weights and tokens: the loss and all gradients of each
// step. llm.c's optimizer then updates its own weights, so later steps also compare the optimizer.
// The gradients are clipped to the norm 1 first, as in examples/gpt.
//
// The script against_llm_c compiles llm.c with double in the place of float.
#define TESTING
#include "train_gpt2.c"

static void read_or_exit(void* to, size_t size, size_t count, FILE* file) {
  if (fread(to, size, count, file) == count) return;
  fprintf(stderr, "the file of numbers is too short\n");
  exit(2);
}

// Writes a checkpoint as llm.c reads it.
static void write_model(const char* path, const int* sizes, const double* weights, size_t count) {
  int header[256] = {20240326, 3, sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[1]};
  FILE* file = fopen(path, "wb");
  fwrite(header, sizeof header, 1, file);
  fwrite(weights, sizeof(double), count, file);
  fclose(file);
}

int main(int argc, char** argv) {
  static const char* const names[NUM_PARAMETER_TENSORS] = {
      "wte",  "wpe",  "ln1w", "ln1b", "qkvw",    "qkvb",    "attprojw", "attprojb",
      "ln2w", "ln2b", "fcw",  "fcb",  "fcprojw", "fcprojb", "lnfw",     "lnfb"};
  if (argc != 3) return 2;
  FILE* file = fopen(argv[1], "rb");
  if (file == NULL) return 2;
  int sizes[7];
  read_or_exit(sizes, sizeof(int), 7, file);
  const size_t T = sizes[0], V = sizes[1], L = sizes[2], C = sizes[4], B = sizes[5];
  const size_t count = V * C + T * C + L * (12 * C * C + 13 * C) + 2 * C;
  double* theirs = malloc(count * sizeof(double));  // of examples/gpt
  read_or_exit(theirs, sizeof(double), count, file);
  write_model(argv[2], sizes, theirs, count);
  GPT2 model;
  gpt2_build_from_checkpoint(&model, argv[2]);
  int* inputs = malloc(B * T * sizeof(int));
  int* targets = malloc(B * T * sizeof(int));

  double worst_loss = 0, worst_gradient = 0;
  for (int step = 1; step <= sizes[6]; ++step) {
    double loss;
    read_or_exit(&loss, sizeof(double), 1, file);
    read_or_exit(theirs, sizeof(double), count, file);
    read_or_exit(inputs, sizeof(int), B * T, file);
    read_or_exit(targets, sizeof(int), B * T, file);
    gpt2_forward(&model, inputs, targets, B, T);
    gpt2_zero_grad(&model);
    gpt2_backward(&model);

    const double of_loss = fabs(loss / model.mean_loss - 1);
    if (!(of_loss <= worst_loss)) worst_loss = of_loss;
    printf("step %2d   loss %.12f   llm.c %.12f", step, loss, (double)model.mean_loss);
    // The gradients of a tensor are compared with its largest one.
    const double* mine = model.grads_memory;
    const char* worst_name = "";
    double worst = 0, squares = 0;
    for (size_t t = 0, at = 0; t < NUM_PARAMETER_TENSORS; ++t) {
      double largest = 0, difference = 0;
      for (size_t i = 0; i < model.param_sizes[t]; ++i, ++at) {
        largest = fmax(largest, fabs(mine[at]));
        difference = fmax(difference, fabs(mine[at] - theirs[at]));
        squares += mine[at] * mine[at];
      }
      if (!(difference / largest <= worst)) {
        worst = difference / largest;
        worst_name = names[t];
      }
    }
    printf("   largest difference of a gradient %.1e (%s)\n", worst, worst_name);
    if (!(worst <= worst_gradient)) worst_gradient = worst;

    const double scale = fmin(1, 1 / sqrt(squares));
    for (size_t i = 0; i < count; ++i) model.grads_memory[i] *= scale;
    gpt2_update(&model, 0.01, 0.9, 0.95, 1e-8, 0.1, step);
  }
  printf(
      "%zu parameters, %d steps: largest relative difference %.1e of a loss, %.1e of a gradient\n",
      count, sizes[6], worst_loss, worst_gradient);
  return worst_loss <= 1e-9 && worst_gradient <= 1e-9 ? 0 : 1;
}
