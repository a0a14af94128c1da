// Counts kernels by name. Build and run it:
//
//   cc -shared -fPIC -O2 -I"$(leadline tools --include)" kernels.c -o kernels.so
//   leadline run --tool ./kernels.so --tool-option kernels.least=2 train.py
#include <leadline/tool.h>
#include <stdlib.h>

enum { MOST = 4096 };

struct counts {
  int64_t launches[MOST];
};

static struct counts* counts_of(leadline_run* run) {
  if (run->state == NULL) run->state = calloc(1, sizeof(struct counts));
  return run->state;
}

static void launch(leadline_run* run, const leadline_batch* batch) {
  struct counts* counts = counts_of(run);
  const int64_t* kernels = leadline_column(batch, "kernel");
  for (size_t i = 0; counts != NULL && i < batch->rows; ++i)
    if (kernels[i] >= 0 && kernels[i] < MOST) ++counts->launches[kernels[i]];
}

static void finish(leadline_run* run) {
  const struct counts* counts = run->state;
  const char* least = run->option(run, "least");
  leadline_table(run, "kernels", "kernel=name launches");
  int64_t all = 0;
  for (int64_t kernel = 0; counts != NULL && kernel < MOST; ++kernel) {
    all += counts->launches[kernel];
    if (counts->launches[kernel] < atoll(least)) continue;
    const int64_t row[] = {kernel, counts->launches[kernel]};
    leadline_row(run, row, 2);
  }
  leadline_say(run, "in all", all > 0 ? "Every launch was counted." : "Nothing was launched.");
  free(run->state);
}

LEADLINE_TOOL(kernels, .doc = "Counts kernels by name.", .options = "least=1", .launch = launch, .finish = finish)
