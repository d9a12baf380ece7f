#include "tests/timing/sweep_fit.h"

namespace spyre {
namespace {

double error_of(const std::vector<Measured>& rows, const Rates& rates) {
  double squares = 0;
  for (const Measured& row : rows) {
    const double error = decode_matmul_time(row.shape, row.split, rates).us() / row.us - 1;
    squares += error * error;
  }
  return squares;
}

}  // namespace

const std::vector<Fitted>& fitted_to_sweep() {
  static const std::vector<Fitted> kFigures = {{"slice_alone", &Rates::slice_alone},
                                               {"slice_shared", &Rates::slice_shared},
                                               {"slice_one_corelet", &Rates::slice_one_corelet},
                                               {"slice_few_rows", &Rates::slice_few_rows},
                                               {"weight_columns_cut", &Rates::weight_columns_cut},
                                               {"weight_columns_whole", &Rates::weight_columns_whole},
                                               {"weight_few_rows", &Rates::weight_few_rows}};
  return kFigures;
}

Rates fit(const std::vector<Measured>& rows, Rates start) {
  double least = error_of(rows, start);
  for (double step = 0.1; step > 5e-4; step /= 2) {
    bool better = true;
    while (better) {
      better = false;
      for (const Fitted& figure : fitted_to_sweep()) {
        for (const double factor : {1 + step, 1 / (1 + step)}) {
          Rates tried = start;
          tried.*figure.rate *= factor;
          const double error = error_of(rows, tried);
          if (error >= least) continue;
          start = tried;
          least = error;
          better = true;
        }
      }
    }
  }
  return start;
}

}  // namespace spyre
