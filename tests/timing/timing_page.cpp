// Writes docs/timing.md, or says that it is out of date: how well the event model agrees with what upstream
// measured and published.
//
//   timing_page PAGE           writes the page
//   timing_page --check PAGE   fails when the page says something else
#include <cstdio>
#include <cstring>
#include <fstream>

#include "spyre/device/timing/test_published.h"
#include "tests/timing/sweep_fit.h"

namespace spyre::timing {
namespace {

double kernel_us(const program::DeviceProgram& program, const Rates& rates = fitted_rates()) {
  return time_of(program, rates, Detail::kTotals).kernel.us();
}

std::string percent(double part) {
  return fmt::format("{:+.1f} %", 100 * part);
}

// ---- published times ------------------------------------------------------------------------------------

std::string check_values() {
  std::vector<std::pair<std::string, std::pair<double, double>>> rows;
  const auto add = [&](const Published& p, double said) {
    rows.push_back({p.name, {said, kernel_us(p.program)}});
  };
  add(streaming("neg", 1, 4096, 2048), 320.0);
  add(streaming("add", 2, 4096, 2048), 431.8);
  rows.push_back({"softmax of 4096 x 2048, intermediates in LX",
                  {320.0, kernel_us(softmax(4096, 2048, 32, Stage::kInputToo))}});
  add(row_sum(4096, 2048, 32), 125.1);
  add(row_sum(4096, 2048, 8), 231.6);
  add(row_sum(4096, 2048, 1), 1136.8);
  add(transpose(2048, 2048), 144.6);
  add(square_matmul(2048, 2048, 2048, {.m = 8, .n = 4}), 266.3);
  add(square_matmul(4096, 4096, 4096, {.m = 8, .n = 4}), 1883.8);
  add(square_matmul(4096, 4096, 4096, {.m = 32}), 3944.2);
  add(square_matmul(512, 4096, 4096, {.m = 8, .n = 4}), 303.7);
  std::string text = "| kernel | published us | simulated us | |\n|---|--:|--:|--:|\n";
  for (const auto& [name, us] : rows) {
    const auto [said, simulated] = us;
    text +=
        fmt::format("| {} | {:.1f} | {:.1f} | {} |\n", name, said, simulated, percent(simulated / said - 1));
  }
  return text;
}

// ---- families of curves ---------------------------------------------------------------------------------

constexpr int64_t kRows[] = {256, 1024, 4096, 8192};
constexpr int64_t kCols[] = {512, 2048, 8192};

template <typename Make>
std::vector<Published> over_sizes(Make make) {
  std::vector<Published> made;
  for (const int64_t rows : kRows) {
    for (const int64_t cols : kCols) made.push_back(make(rows, cols));
  }
  return made;
}

void append(std::vector<Published>& to, std::vector<Published> more) {
  for (Published& one : more) to.push_back(std::move(one));
}

std::vector<Published> pointwise_family() {
  auto family = over_sizes([](int64_t r, int64_t c) { return streaming("neg", 1, r, c); });
  append(family, over_sizes([](int64_t r, int64_t c) { return streaming("add", 2, r, c); }));
  append(family, over_sizes([](int64_t r, int64_t c) { return streaming("where3", 3, r, c); }));
  return family;
}

std::vector<Published> broadcast_family() {
  auto family = over_sizes(row_broadcast);
  append(family, over_sizes(column_broadcast));
  return family;
}

std::vector<Published> transport_family() {
  auto family = over_sizes(transpose);
  append(family, over_sizes(concatenate));
  append(family, over_sizes([](int64_t r, int64_t c) { return exchange(r / 16, 16, c); }));
  append(family, over_sizes([](int64_t r, int64_t c) { return exchange(r / 4, 4, c); }));
  return family;
}

std::vector<Published> reduction_family() {
  std::vector<Published> family;
  for (const int64_t rows : kRows) {
    for (const int64_t cols : {2048, 8192}) family.push_back(column_sum(rows, cols));
  }
  for (const int64_t cores : {1, 2, 4, 8, 16, 32}) {
    append(family, over_sizes([&](int64_t r, int64_t c) { return row_sum(r, c, cores); }));
  }
  return family;
}

std::vector<Published> matmul_family() {
  std::vector<Published> family;
  for (const MatmulSplit split :
       {MatmulSplit{.m = 8, .n = 4}, MatmulSplit{.m = 32}, MatmulSplit{.m = 4, .n = 8},
        MatmulSplit{.m = 16, .n = 2}, MatmulSplit{.m = 4, .n = 4}}) {
    for (const int64_t m : {512, 2048, 4096}) {
      for (const int64_t n : {2048, 4096}) family.push_back(square_matmul(m, n, 4096, split));
    }
  }
  return family;
}

std::string curves() {
  struct Family {
    const char* name;
    std::vector<Published> kernels;
    const char* upstream;
  };
  const Family families[] = {{"pointwise", pointwise_family(), "8.5 %"},
                             {"broadcast", broadcast_family(), "5.0 %"},
                             {"transport", transport_family(), "6.1 %"},
                             {"reduction", reduction_family(), "7.2 %"},
                             {"matmul, forced splits", matmul_family(), "29.8 %"}};
  std::string text =
      "| family | kernels | simulated against the curve: RMS | bias | rank correlation | the curve against "
      "the device, "
      "by upstream: RMS |\n|---|--:|--:|--:|--:|--:|\n";
  for (const Family& family : families) {
    std::vector<double> simulated, said;
    for (const Published& kernel : family.kernels) {
      simulated.push_back(kernel_us(kernel.program));
      said.push_back(kernel.us);
    }
    const Agreement found = agreement(simulated, said);
    text += fmt::format("| {} | {} | {:.1f} % | {} | {:.3f} | {} |\n", family.name, said.size(),
                        100 * found.rms_error, percent(found.bias), found.rank_correlation, family.upstream);
  }
  return text;
}

// ---- the measured sweep ---------------------------------------------------------------------------------

std::string agreement_row(const std::string& name, const Agreement& a, size_t rows) {
  return fmt::format("| {} | {} | {:.1f} % | {} | {:.3f} |\n", name, rows, 100 * a.rms_error, percent(a.bias),
                     a.rank_correlation);
}

std::string sweep() {
  const auto families = read_sweep();
  std::string text = "| held back | kernels | RMS error | bias | rank correlation |\n|---|--:|--:|--:|--:|\n";
  std::vector<Measured> all;
  std::vector<double> predicted, measured;
  for (const auto& [name, rows] : families) {
    std::vector<Measured> others;
    for (const auto& [other, its] : families) {
      if (other != name) others.insert(others.end(), its.begin(), its.end());
    }
    const Rates rates = fit(others, fitted_rates());
    std::vector<double> here, there;
    for (const Measured& row : rows) {
      here.push_back(kernel_us(matmul_program(row.shape, row.split), rates));
      there.push_back(row.us);
    }
    text += agreement_row(name, agreement(here, there), rows.size());
    predicted.insert(predicted.end(), here.begin(), here.end());
    measured.insert(measured.end(), there.begin(), there.end());
    all.insert(all.end(), rows.begin(), rows.end());
  }
  text += agreement_row("each in turn, all together", agreement(predicted, measured), measured.size());

  const auto simulated =
      agreement(all, [](const Measured& row) { return kernel_us(matmul_program(row.shape, row.split)); });
  const auto closed = agreement(
      all, [](const Measured& row) { return decode_matmul_time(row.shape, row.split, fitted_rates()).us(); });
  text += agreement_row("nothing: simulated at the rates of the card", simulated, all.size());
  text += agreement_row("nothing: the closed form at the same rates", closed, all.size());

  text += "\n| figure | of the card | fitted to all 238 |\n|---|--:|--:|\n";
  const Rates refit = fit(all, fitted_rates());
  for (const Fitted& figure : fitted_to_sweep()) {
    text += fmt::format("| `{}` | {:.4g} | {:.3g} |\n", figure.name, fitted_rates().*figure.rate,
                        refit.*figure.rate);
  }
  return text;
}

// ---- launches -------------------------------------------------------------------------------------------

std::string launches() {
  constexpr const char* kNames[] = {"nothing in LX", "reductions in LX", "differences and exponentials, too",
                                    "and a copy of the input", "the same on 4 cores"};
  std::string text =
      "| softmax of 512 x 1024 | published median us | launch us | | kernel us |\n|---|--:|--:|--:|--:|\n";
  for (size_t i = 0; i < std::size(kSoftmaxMedians); ++i) {
    const SoftmaxMedian& median = kSoftmaxMedians[i];
    const Timeline time =
        time_of(softmax(512, 1024, median.cores, median.stage), fitted_rates(), Detail::kTotals);
    text += fmt::format("| {} | {:.2f} | {:.2f} | {} | {:.1f} |\n", kNames[i], median.us, time.launch.us(),
                        percent(time.launch.us() / median.us - 1), time.kernel.us());
  }
  return text;
}

std::string page() {
  return fmt::format(R"(# How well the clock agrees with the card

*Written by `make docs`; a test compares it with the model.*

`spyre-run --time` and everything else that tells the card's time plays launches through with the event model of
[spyre/device/timing](../spyre/device/timing/README.md), at the rates in `spyre/cost/rates.cpp`. The rates are fits to runs on the
device that upstream published, most of them as curves without the runs ([reference](reference/timing.md)); one sweep of 238
kernels is there in full. [ADR 0061](adr/0061-time-of-a-launch.md) says which figures are followed where they contradict each
other.

## Check values

Times that follow from upstream's formulas, and the same kernels as artifacts, played through. What differs has a reason: the
published row sums leave out the bytes of their results, and the published softmax has no time for arithmetic in LX.

{}
## Curves by family

Kernels of 256 to 8192 rows and 512 to 8192 columns. The runs that the curves were fitted to are not public, so nothing can be held
back here: the first figures say how far the event model is from the curve, the last column how far upstream says the curve is
from the device. The error against the device is about as large as the larger of the two. Upstream's matmuls are one-sided: the
device is slower than the curve, by 22 to 31 % on average; the event model is slower than it, too, where one slice is for many
cores. Upstream's softmax (21.1 %) has no curve of its own.

{}
## Decode matmuls

Measured kernels (`tests/corpus/timing/decode-matmul-sweep.csv`): four projections, 8 and 32 rows, every split over 16 and 32
cores. Each projection is predicted with figures fitted to the other three. Within one projection most splits run at the limit of
the memory and differ by less than the measurement repeats, which is what the rank correlation there says.

{}
## Launches

What a launch costs the host, fitted to five medians, none held back: three figures for five points. They contain no kernel.

{}
## What this does not tell

Chains of dependent pointwise operations (upstream: slower than their bytes), outer products of two broadcast operands, and
softmaxes on few cores have no published times. Latencies, port widths and the number of requests under way are unknown; small
kernels are too fast here.
)",
                     check_values(), curves(), sweep(), launches());
}

int run(int argc, char** argv) {
  const bool check = argc == 3 && std::strcmp(argv[1], "--check") == 0;
  if (argc != 2 && !check) {
    std::fprintf(stderr, "usage: timing_page [--check] PAGE\n");
    return 2;
  }
  const std::string text = page();
  const char* file = argv[argc - 1];
  if (!check) {
    std::ofstream out(file);
    out << text;
    return out.good() ? 0 : 1;
  }
  const auto there = read_text(file);
  if (there.ok() && there.value() == text) return 0;
  std::fprintf(stderr, "%s is out of date: run `make docs`\n", file);
  return 1;
}

}  // namespace
}  // namespace spyre::timing

int main(int argc, char** argv) {
  return spyre::timing::run(argc, argv);
}
