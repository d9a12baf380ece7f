// Copies, restickify, gather and scatter, conversions, relayout, selection.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "spyre/device/exec/op_case.h"

namespace spyre::testing_artifacts {

using namespace exec;  // NOLINT: tests of that layer

namespace {

constexpr DataFormat kIndex = DataFormat::SENUINT32;

TEST(Copy, IdentityMovesBitsThroughTwoLayouts) {
  // fp32 under identity may hold int32: every pattern survives, signalling NaNs included.
  OpSpec op{
      .function = "identity",
      .dims = {{"mb", 4, 2}, {"x", 3}, {"out", 64}},
      .tensors = {{.order = {"mb", "x", "out"}, .stick_sizes = {32}, .format = kFp32},
                  {.order = {"x", "out", "mb"}, .stick_sizes = {32}, .format = kFp32, .gap = {{"x", 2}}}}};
  OpCase c(op);
  const auto pattern = [](const Point& g) {
    return static_cast<uint32_t>(0x7F800001 + g.at("mb") * 1000 + g.at("x") * 100 + g.at("out"));
  };
  for_points(c.extents_of(0), [&](const Point& g) {
    c.memory().put_bits(c.op().tensors[0].base, element_at(c.op(), c.op().tensors[0], g), kFp32, pattern(g));
  });
  c.run();
  for_points(c.extents_of(1), [&](const Point& g) { EXPECT_EQ(c.bits(1, g), pattern(g)); });
}

TEST(Copy, IdentityTakesEveryFormatAndDivision) {
  for (const DataFormat format : {kFp16, kFp32, kFp8, DataFormat::SEN152_FP8, DataFormat::IEEE_INT32,
                                  DataFormat::SENINT8, DataFormat::IEEE_FP16, DataFormat::BFLOAT16}) {
    for (const int64_t splits : {1, 2, 32}) {
      const int64_t eps = elems_per_stick(format);
      OpSpec op{.function = "identity", .dims = {{"mb", 32, splits}, {"out", eps}}};
      op.tensors.assign(2, {.order = {"mb", "out"}, .stick_sizes = {eps}, .format = format});
      OpCase c(op);
      for (size_t i = 0; i < 32 * 128; ++i) {
        c.memory().hbm()[i] = std::byte(i * 7 + i / 128);
      }
      c.run();
      EXPECT_EQ(
          std::memcmp(c.memory().hbm().data(), c.memory().hbm().data() + c.op().tensors[1].base, 32 * 128), 0)
          << to_string(format) << " over " << splits;
    }
  }
}

TEST(Copy, IdentityBroadcastsWhatTheInputDoesNotHave) {
  OpSpec op{.function = "identity",
            .dims = {{"mb", 4, 2}, {"out", 64}},
            .tensors = {{.order = {"out", "mb"}, .scale = {{"mb", -1}}}, {.order = {"mb", "out"}}}};
  OpCase c(op);
  c.fill(0, [](const Point& g) { return sample({{"out", g.at("out")}}); });
  c.run();
  c.expect([](const Point& g) { return sample({{"out", g.at("out")}}); });
}

TEST(Copy, RestickifyTurnsTheStick) {
  for (const int64_t splits : {1, 3}) {
    OpSpec op{
        .function = "ReStickifyOpHBM",
        .dims = {{"mb", 128}, {"out", 192, splits}},
        .tensors = {{.order = {"mb", "out"}, .stick = {"out"}}, {.order = {"out", "mb"}, .stick = {"mb"}}}};
    OpCase c(op);
    c.fill(0, [](const Point& g) { return sample(g); });
    const OpCounts counts = c.run();
    c.expect([](const Point& g) { return sample(g); });
    EXPECT_EQ(counts.total().traffic, (Traffic{.hbm_read = 128 * 192 * 2, .hbm_written = 128 * 192 * 2}));
  }
}

TEST(Copy, RestickifyLeavesOutRowsThatMemoryDoesNotHave) {
  // 100 rows padded to 128: the source has only 100, the gap is a shortfall as launch_spec.json shows.
  OpSpec op{.function = "ReStickifyOpHBM",
            .dims = {{"mb", 128}, {"out", 64}},
            .tensors = {{.order = {"mb", "out"}, .stick = {"out"}, .gap = {{"mb", 28}}},
                        {.order = {"out", "mb"}, .stick = {"mb"}}},
            .symbolic = true};
  const std::string bundle = R"(
    module {
      func.func @sdsc_bundle(%arg_0_base_addr: !sdscbundle.input_arg<index>, %arg_1_base_addr: !sdscbundle.input_arg<index>) {
        %a = sdscbundle.input_arg_extract value from %arg_0_base_addr : !sdscbundle.input_arg<index> -> index
        %b = sdscbundle.input_arg_extract value from %arg_1_base_addr : !sdscbundle.input_arg<index> -> index
        sdscbundle.sdsc_execute (%a, %b) {sdsc_filename="sdsc_0.json", "symbol_ids"=[-1, -2]}
        return
      }
    })";
  const std::string launch = R"({"version": 1, "kernel_name": "k", "pool_size": 0, "args": [
    {"arg_index": 0, "role": "input", "shape": [100, 64], "dtype": "float16",
     "layout": {"device_size": [1, 100, 64], "device_dtype": "SEN169_FP16", "element_arrangement": "STANDARD"}},
    {"arg_index": 1, "role": "output", "shape": [64, 100], "dtype": "float16",
     "layout": {"device_size": [2, 64, 64], "device_dtype": "SEN169_FP16", "element_arrangement": "STANDARD"}}]})";
  const auto program = read_program(
      {{"bundle.mlir", bundle}, {"sdsc_0.json", write_sdsc(op).dump()}, {"launch_spec.json", launch}});
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  EXPECT_EQ(program.value().ops[0].tensors[0].dims[0].gap, -28);
  const int64_t in = 128, out = in + 100 * 128;  // the rows end exactly where the result begins
  TestMemory memory(out + 2 * 64 * 128);
  for (int64_t i = 0; i < 100 * 64; ++i) {
    memory.put(in, i, kFp16, sample({{"mb", i / 64}, {"out", i % 64}}));
  }
  const auto counts = run_both(program.value(), {.parameters = {in, out}}, memory);
  ASSERT_TRUE(counts.ok()) << counts.error().to_string();
  for (int64_t r = 0; r < 100; ++r) {
    for (int64_t k = 0; k < 64; ++k) {
      EXPECT_EQ(memory.get(out, (r / 64 * 64 + k) * 64 + r % 64, kFp16), sample({{"mb", r}, {"out", k}}));
    }
  }
  EXPECT_EQ(counts.value().total().traffic.hbm_read, 100 * 128);
}

/// Rows of a table of 10 picked by 32 indices; the table lies rows outermost.
OpSpec gather(int64_t splits) {
  return {.function = "identity",
          .dims = {{"mb", 32 * splits, splits}, {"out", 128}},
          .tensors = {index_tensor(1),
                      {.order = {"out", "mb"},
                       .gap = {{"mb", 10 - 32 * splits}},
                       .max_dim_sizes = {-1, 1},
                       .indirection = "value_tensor",
                       .partner = 0},
                      {.order = {"mb", "out"}}}};
}

TEST(Gather, PicksRowsByIndex) {
  for (const int64_t splits : {1, 2}) {
    OpCase c(gather(splits));
    const auto index = [](int64_t i) { return (i * 7) % 10; };
    for (int64_t i = 0; i < 32 * splits; ++i) {
      c.memory().put_bits(c.op().tensors[0].base, i, kIndex, static_cast<uint32_t>(index(i)));
    }
    for_points({{"mb", 10}, {"out", 128}}, [&](const Point& g) { c.put(1, g, sample(g)); });
    const OpCounts counts = c.run();
    c.expect([&](const Point& g) { return sample({{"mb", index(g.at("mb"))}, {"out", g.at("out")}}); });
    EXPECT_EQ(counts.tensor_total(0).hbm_read, 128 * splits);
    EXPECT_EQ(counts.tensor_total(1).hbm_read, 32 * splits * 256);  // a row piece per entry, repeats included
  }
}

TEST(Gather, CoresMayShareAStickOfIndices) {
  // 8 entries over two cores: the second starts 16 bytes into the one stick of indices.
  OpSpec op = gather(1);
  op.dims[0] = {"mb", 8, 2};
  op.tensors[1].gap = {{"mb", 2}};
  OpCase c(op);
  for (int64_t i = 0; i < 8; ++i) {
    c.memory().put_bits(c.op().tensors[0].base, i, kIndex, static_cast<uint32_t>(9 - i));
  }
  for_points({{"mb", 10}, {"out", 128}}, [&](const Point& g) { c.put(1, g, sample(g)); });
  c.run();
  c.expect([&](const Point& g) { return sample({{"mb", 9 - g.at("mb")}, {"out", g.at("out")}}); });
}

TEST(Gather, AnIndexOfTwoDimsPicksOneRowPerPair) {
  // out[x, mb, :] = table[index[x, mb], :]; the table has no dim of its own for x.
  OpSpec op{.function = "identity",
            .dims = {{"x", 3}, {"mb", 32}, {"out", 64}},
            .tensors = {{.order = {"x", "mb"},
                         .stick = {"mb"},
                         .stick_sizes = {32},
                         .format = kIndex,
                         .indirection = "index_tensor",
                         .partner = 1},
                        {.order = {"out", "mb", "x"},
                         .max_dim_sizes = {-1, 1, 3},
                         .indirection = "value_tensor",
                         .partner = 0},
                        {.order = {"mb", "x", "out"}}}};
  OpCase c(op);
  const auto index = [](const Point& g) { return (g.at("x") * 5 + g.at("mb") * 3) % 32; };
  for_points({{"x", 3}, {"mb", 32}}, [&](const Point& g) {
    c.memory().put_bits(c.op().tensors[0].base, g.at("x") * 32 + g.at("mb"), kIndex,
                        static_cast<uint32_t>(index(g)));
  });
  for_points({{"mb", 32}, {"out", 64}}, [&](const Point& g) {
    c.put(1, {{"x", 0}, {"mb", g.at("mb")}, {"out", g.at("out")}}, sample(g));
  });
  c.run();
  c.expect([&](const Point& g) { return sample({{"mb", index(g)}, {"out", g.at("out")}}); });
}

TEST(Gather, HasFastCodeForRowsAndPages) {
  for (const int64_t splits : {1, 2}) {
    OpCase c(gather(splits));
    for (int64_t i = 0; i < 32 * splits; ++i) {
      c.memory().put_bits(c.op().tensors[0].base, i, kIndex, static_cast<uint32_t>(i % 10));
    }
    const auto program = read_program({{"sdsc_0.json", write_sdsc(c.op()).dump()}});
    ASSERT_TRUE(program.ok()) << program.error().to_string();
    PathCounts paths;
    ASSERT_TRUE(run_both(program.value(), {}, c.memory(), {}, &paths).ok());
    EXPECT_EQ(paths.fast, 1);
  }
}

TEST(Gather, WaitsForAnIndexThatIsStillToBeComputed) {
  // The index comes from a core's LX by an op that may wait until its core has more to do.
  OpSpec gathers = gather(1);
  gathers.tensors[0].base = 1024;
  gathers.tensors[1].base = 2048;
  gathers.tensors[2].base = 8192;
  const OpSpec copies{
      .function = "identity",
      .dims = {{"mb", 1}, {"out", 32}},
      .tensors = {{.order = {"mb", "out"}, .stick_sizes = {32}, .format = kIndex, .lx = true},
                  {.order = {"mb", "out"}, .stick_sizes = {32}, .format = kIndex, .base = 1024}}};
  const std::string bundle =
      "func.func @b() {\n"
      "sdscbundle.sdsc_execute () {sdsc_filename=\"sdsc_0.json\", \"symbol_ids\"=[]}\n"
      "sdscbundle.sdsc_execute () {sdsc_filename=\"sdsc_1.json\", \"symbol_ids\"=[]}\n"
      "return }";
  const auto program = read_program({{"bundle.mlir", bundle},
                                     {"sdsc_0.json", write_sdsc(copies).dump()},
                                     {"sdsc_1.json", write_sdsc(gathers).dump()}});
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  TestMemory memory(8192 + 32 * 256);
  for (int64_t i = 0; i < 32; ++i) {
    const auto row = static_cast<uint32_t>(9 - i % 10);
    std::memcpy(memory.lx(0).data() + i * 4, &row, 4);
    memory.put_bits(1024, i, kIndex, 1000);  // no row of the table
  }
  for (int64_t i = 0; i < 10 * 128; ++i) {
    memory.put(2048, i, kFp16, static_cast<float>(i % 64));
  }
  PathCounts paths;
  ASSERT_TRUE(run_both(program.value(), {}, memory, {}, &paths).ok());
  EXPECT_EQ(paths.fast, 2);
}

TEST(Gather, FaultsOnAnIndexPastTheTable) {
  OpCase c(gather(1));
  for (int64_t i = 0; i < 32; ++i) {
    c.memory().put_bits(c.op().tensors[0].base, i, kIndex, i == 20 ? 10 : 0);
  }
  const auto program = read_program({{"sdsc_0.json", write_sdsc(c.op()).dump()}});
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  const auto counts = run_both(program.value(), {}, c.memory());
  ASSERT_FALSE(counts.ok());
  EXPECT_EQ(counts.error().kind, ErrorKind::kDeviceFault);
  EXPECT_EQ(counts.error().message,
            "core 0, address 0x50, sdsc_0.json (identity), instruction 0: index 10 into Tensor1, which has "
            "10 rows");
}

TEST(Gather, PagesCoverSeveralRowsPerEntry) {
  // Pages of 4 rows: entry g / 4 of the index picks the page, g mod 4 the row in it.
  OpSpec op{.function = "identity",
            .dims = {{"mb", 32}, {"out", 64}},
            .tensors = {index_tensor(1), indexed_rows(4), {.order = {"mb", "out"}}}};
  OpCase c(op);
  for (int64_t i = 0; i < 32; ++i) {
    c.memory().put_bits(c.op().tensors[0].base, i, kIndex, static_cast<uint32_t>(7 - i / 4));
  }
  c.fill(1, [](const Point& g) { return sample(g); });
  c.run();
  c.expect([](const Point& g) {
    return sample({{"mb", (7 - g.at("mb") / 4) * 4 + g.at("mb") % 4}, {"out", g.at("out")}});
  });
}

/// 32 rows of every core put into a table of 40, which lies rows outermost.
OpSpec scatter(int64_t splits, int64_t columns = 64) {
  return {.function = "identity",
          .dims = {{"mb", 32 * splits, splits}, {"out", columns}},
          .tensors = {index_tensor(2),
                      {.order = {"mb", "out"}},
                      {.order = {"out", "mb"},
                       .gap = {{"mb", 40 - 32 * splits}},
                       .max_dim_sizes = {-1, 1},
                       .indirection = "value_tensor",
                       .partner = 0}}};
}

TEST(Scatter, PutsRowsWhereTheIndexSays) {
  OpCase c(scatter(1));
  for (int64_t i = 0; i < 32; ++i) {
    c.memory().put_bits(c.op().tensors[0].base, i, kIndex, static_cast<uint32_t>(31 - i));
  }
  c.fill(1, [](const Point& g) { return sample(g); });
  c.run();
  c.expect([](const Point& g) { return sample({{"mb", 31 - g.at("mb")}, {"out", g.at("out")}}); });
}

TEST(Scatter, OfTwoRowsForOnePlaceTheLastOneStays) {
  // On several cores, too: rows go to places 0, 1, 2, 0, 1, 2, ...
  for (const int64_t splits : {1, 2, 8}) {
    OpCase c(scatter(splits, 256));
    for (int64_t i = 0; i < 32 * splits; ++i) {
      c.memory().put_bits(c.op().tensors[0].base, i, kIndex, static_cast<uint32_t>(i % 3));
    }
    c.fill(1, [](const Point& g) { return sample(g); });
    const auto program = read_program({{"sdsc_0.json", write_sdsc(c.op()).dump()}});
    ASSERT_TRUE(program.ok()) << program.error().to_string();
    PathCounts paths;
    ASSERT_TRUE(run_both(program.value(), {}, c.memory(), {}, &paths).ok());
    EXPECT_EQ(paths.fast, 1);
    for (int64_t place = 0; place < 3; ++place) {
      const int64_t last = (32 * splits - 1 - place) / 3 * 3 + place;
      EXPECT_EQ(c.get(2, {{"mb", place}, {"out", 7}}), sample({{"mb", last}, {"out", 7}}));
    }
  }
}

TEST(Scatter, FaultsOnAnIndexPastTheTable) {
  OpCase c(scatter(1));
  for (int64_t i = 0; i < 32; ++i) {
    c.memory().put_bits(c.op().tensors[0].base, i, kIndex, i == 20 ? 40 : 0);
  }
  const auto program = read_program({{"sdsc_0.json", write_sdsc(c.op()).dump()}});
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  const auto counts = run_both(program.value(), {}, c.memory());
  ASSERT_FALSE(counts.ok());
  EXPECT_EQ(counts.error().kind, ErrorKind::kDeviceFault);
}

// ---- conversions
// ----------------------------------------------------------------------------------------------

OpSpec conversion(const char* name, DataFormat from, DataFormat to, int64_t splits, int64_t columns = 128) {
  return {.function = name,
          .dims = {{"mb", 4, splits}, {"out", columns}},
          .tensors = {{.order = {"mb", "out"}, .stick_sizes = {elems_per_stick(from)}, .format = from},
                      {.order = {"mb", "out"}, .stick_sizes = {elems_per_stick(to)}, .format = to}}};
}

TEST(Conversion, WideningAlternatesGroupsOfFourOverTwoSticks) {
  for (const int64_t splits : {1, 2, 4}) {
    OpCase c(conversion("dl16tofp32", kFp16, kFp32, splits));
    c.fill(0, [](const Point& g) { return sample(g); });
    c.run();
    for_points({{"mb", 4}, {"p", 2}, {"g", 8}, {"s", 2}, {"e", 4}}, [&](const Point& q) {
      const int64_t from = 64 * q.at("p") + 8 * q.at("g") + 4 * q.at("s") + q.at("e");
      const int64_t to = 32 * (2 * q.at("p") + q.at("s")) + 4 * q.at("g") + q.at("e");
      EXPECT_EQ(c.get(1, {{"mb", q.at("mb")}, {"out", to}}), sample({{"mb", q.at("mb")}, {"out", from}}));
    });
  }
}

TEST(Conversion, NarrowingInterleavesTwoSticksByFour) {
  OpCase c(conversion("fp32todl16", kFp32, kFp16, 2));
  c.fill(0, [](const Point& g) { return sample(g) + 0.0001f; });
  c.run();
  for_points({{"mb", 4}, {"t", 2}, {"h", 2}, {"g", 8}, {"e", 4}}, [&](const Point& q) {
    const int64_t from = 64 * q.at("t") + 32 * q.at("h") + 4 * q.at("g") + q.at("e");
    const int64_t to = 64 * q.at("t") + 8 * q.at("g") + 4 * q.at("h") + q.at("e");
    const float wanted =
        decode_element(kFp16, encode_element(kFp16, sample({{"mb", q.at("mb")}, {"out", from}}) + 0.0001f));
    EXPECT_EQ(c.get(1, {{"mb", q.at("mb")}, {"out", to}}), wanted);
  });
}

TEST(Conversion, WideningThenNarrowingRestoresTheOrder) {
  OpCase widen(conversion("dl16tofp32", kFp16, kFp32, 1)), narrow(conversion("fp32todl16", kFp32, kFp16, 1));
  widen.fill(0, [](const Point& g) { return sample(g); });
  widen.run();
  for_points(narrow.extents_of(0), [&](const Point& g) { narrow.put(0, g, widen.get(1, g)); });
  narrow.run();
  narrow.expect([](const Point& g) { return sample(g); });
}

TEST(Conversion, ChannelQuantisationInterleavesByEightAndSaturates) {
  OpCase c(conversion("qfp8ch", kFp16, kFp8, 2));
  const auto value = [](const Point& g) {
    return g.at("out") == 9 ? 1000.0f : g.at("out") == 10 ? -460.0f : sample(g);
  };
  c.fill(0, value);
  c.run();
  for (int64_t row = 0; row < 4; ++row) {
    for (int64_t h = 0; h < 2; ++h) {
      for (int64_t i = 0; i < 64; ++i) {
        const int64_t from = 64 * h + i, to = 16 * (i / 8) + 8 * h + i % 8;
        const float v = value({{"mb", row}, {"out", from}});
        const float wanted = v > 448 ? 448 : v < -448 ? -448 : decode_element(kFp8, encode_element(kFp8, v));
        EXPECT_EQ(c.get(1, {{"mb", row}, {"out", to}}), wanted) << from;
      }
    }
  }
}

TEST(Conversion, Fp8ToFp16IsTheWayBack) {
  OpCase quantise(conversion("qfp8ch", kFp16, kFp8, 1)), widen(conversion("fp8todl16", kFp8, kFp16, 1));
  const auto value = [](const Point& g) { return std::round(sample(g)); };  // exact in fp8
  quantise.fill(0, value);
  quantise.run();
  for_points(widen.extents_of(0), [&](const Point& g) { widen.put(0, g, quantise.get(1, g)); });
  widen.run();
  widen.expect(value);
}

TEST(Conversion, WeightQuantisationAlternatesTwoRows) {
  // K rows of N columns, stick N, become sticks of 2 rows x 64 columns.
  OpSpec op{
      .function = "qfp8wt",
      .dims = {{"mb", 4}, {"out", 128, 2}},
      .tensors = {{.order = {"mb", "out"}},
                  {.order = {"mb", "out"}, .stick = {"mb", "out"}, .stick_sizes = {2, 64}, .format = kFp8}}};
  OpCase c(op);
  c.fill(0, [](const Point& g) { return std::round(sample(g)); });
  c.run();
  for_points({{"mb", 4}, {"out", 128}}, [&](const Point& g) {
    const int64_t k = g.at("mb"), n = g.at("out");
    const int64_t element = (n / 64 * 2 + k / 2) * 128 + 2 * (n % 64) + k % 2;
    EXPECT_EQ(c.memory().get(c.op().tensors[1].base, element, kFp8), std::round(sample(g)));
  });
}

TEST(Conversion, BatchQuantisationAlternatesEightOfTwoRows) {
  // Sticks of 8 columns x 2 rows x 8 columns: lane = 16 (d div 8) + 8 e + d mod 8.
  OpSpec op{
      .function = "qfp8mb",
      .dims = {{"mb", 4, 2}, {"out", 128}},
      .tensors = {
          {.order = {"mb", "out"}},
          {.order = {"mb", "out"}, .stick = {"out", "mb", "out"}, .stick_sizes = {8, 2, 8}, .format = kFp8}}};
  OpCase c(op);
  c.fill(0, [](const Point& g) { return std::round(sample(g)); });
  c.run();
  for_points({{"mb", 4}, {"out", 128}}, [&](const Point& g) {
    const int64_t e = g.at("mb"), d = g.at("out");
    const int64_t lane = 16 * (d % 64 / 8) + 8 * (e % 2) + d % 8;
    EXPECT_EQ(c.memory().get(c.op().tensors[1].base, (d / 64 * 2 + e / 2) * 128 + lane, kFp8),
              std::round(sample(g)));
  });
}

TEST(Conversion, IntegersTruncateAndSaturate) {
  OpCase c(conversion("fp32toint32", kFp32, DataFormat::IEEE_INT32, 2, 32));
  const float values[] = {1.9f, -1.9f, 3e9f, -3e9f, NAN, 0.5f};
  c.fill(0, [&](const Point& g) { return values[g.at("out") % 6]; });
  c.run();
  const int32_t expected[] = {1, -1, INT32_MAX, INT32_MIN, 0, 0};
  for (int64_t i = 0; i < 32; ++i) {
    EXPECT_EQ(static_cast<int32_t>(c.bits(1, {{"mb", 3}, {"out", i}})), expected[i % 6]);
  }
  OpCase back(conversion("int32tofp32", DataFormat::IEEE_INT32, kFp32, 1, 32));
  back.fill(0, [](const Point& g) { return static_cast<float>(g.at("out") - 16); });
  back.run();
  back.expect([](const Point& g) { return static_cast<float>(g.at("out") - 16); });
}

/// Any bits at all: NaN of both signs, infinities, subnormals, what rounds up and what rounds down.
TEST(Conversion, FastCodeTreatsAnyBitsAsTheInterpreterDoes) {
  constexpr int64_t kRows = 4, kColumns = 16384;
  const struct {
    const char* name;
    DataFormat from, to;
  } conversions[] = {{"dl16tofp32", kFp16, kFp32},
                     {"fp32todl16", kFp32, kFp16},
                     {"fp32toint32", kFp32, DataFormat::IEEE_INT32},
                     {"int32tofp32", DataFormat::IEEE_INT32, kFp32},
                     {"qfp8ch", kFp16, kFp8},
                     {"fp8todl16", kFp8, kFp16}};
  for (const auto& [name, from, to] : conversions) {
    for (const VectorKernels& kernels : vector_kernels()) {
      SCOPED_TRACE(fmt::format("{} on {}", name, kernels.name));
      OpCase c(conversion(name, from, to, 2, kColumns));
      std::mt19937 bits(7);
      const int64_t bytes = kRows * kColumns * bits_of(from) / 8;
      for (int64_t at = 0; at < bytes; at += 4) {
        // Every code of 16 bits once; after them, and of 32 bits, any.
        const uint32_t code = bits_of(from) == 16 && at < 131072 ? (at / 2) | (at / 2 + 1) << 16 : bits();
        std::memcpy(c.memory().hbm().data() + at, &code, 4);
      }
      const auto program = read_program({{"sdsc_0.json", write_sdsc(c.op()).dump()}});
      ASSERT_TRUE(program.ok()) << program.error().to_string();
      PathCounts paths;
      ASSERT_TRUE(run_both(program.value(), {}, c.memory(), {}, &paths, kernels).ok());
      EXPECT_EQ(paths.fast, 1);
    }
  }
}

// ---- relayout
// -------------------------------------------------------------------------------------------------

TEST(Shuffle, MovesRowsToTheCoresThatWantThem) {
  // Four rows by two sticks. Before: core c holds rows 2c, 2c + 1. After: core c holds stick c of all rows.
  OpSpec op{.function = "shuffle",
            .dims = {{"mb", 4, 2}, {"out", 128}},
            .tensors = {{.order = {"mb", "out"}, .base = 0, .lx = true},
                        {.order = {"mb", "out"}, .base = 1024, .lx = true}}};
  for (int core = 0; core < 2; ++core) {
    op.tensors[0].own_slices[core] = {{"mb", core}, {"out", 0}};
    op.tensors[1].own_slices[core] = {{"mb", 0}, {"out", core}};
  }
  OpCase c(op);
  const auto put_lx = [&](int core, int64_t element, float value) {
    const auto bits = static_cast<uint16_t>(encode_element(kFp16, value));
    std::memcpy(c.memory().lx(core).data() + element * 2, &bits, 2);
  };
  for_points({{"mb", 4}, {"out", 128}}, [&](const Point& g) {
    const int64_t row = g.at("mb"), column = g.at("out");
    put_lx(static_cast<int>(row / 2), (column / 64 * 2 + row % 2) * 64 + column % 64, sample(g));
  });
  const OpCounts counts = c.run();
  for_points({{"mb", 4}, {"out", 128}}, [&](const Point& g) {
    uint16_t bits = 0;
    const int64_t element = 512 + g.at("mb") * 64 + g.at("out") % 64;
    std::memcpy(&bits, c.memory().lx(static_cast<int>(g.at("out") / 64)).data() + element * 2, 2);
    EXPECT_EQ(decode_element(kFp16, bits), sample(g));
  });
  // Half of everything crosses, one hop.
  EXPECT_EQ(counts.total().ring_bytes, 4 * 128);
  EXPECT_EQ(counts.total().ring_byte_hops, 4 * 128);
  EXPECT_EQ(counts.total().traffic, (Traffic{.lx_read = 1024, .lx_written = 1024}));
}

TEST(Shuffle, MayReplicateOneCoreToMany) {
  OpSpec op{.function = "shuffle",
            .dims = {{"mb", 2}, {"out", 64}},
            .tensors = {{.order = {"mb", "out"}, .base = 0, .lx = true},
                        {.order = {"mb", "out"}, .base = 512, .lx = true}}};
  op.tensors[0].own_slices[0] = {{"mb", 0}, {"out", 0}};
  for (int core = 0; core < 4; ++core) {
    op.tensors[1].own_slices[core] = {{"mb", 0}, {"out", 0}};
  }
  OpCase c(op);
  for (int i = 0; i < 256; ++i) {
    c.memory().lx(0)[i] = std::byte(i);
  }
  const OpCounts counts = c.run();
  for (int core = 0; core < 4; ++core) {
    EXPECT_EQ(std::memcmp(c.memory().lx(core).data() + 512, c.memory().lx(0).data(), 256), 0) << core;
  }
  EXPECT_EQ(counts.total().ring_bytes, 3 * 256);
  EXPECT_EQ(counts.total().ring_byte_hops, (1 + 2 + 3) * 256);
}

// ---- selection
// ------------------------------------------------------------------------------------------------

TEST(TopK, RanksAreStableAndSplitOverCores) {
  const std::pair<const char*, DataFormat> variants[] = {
      {"topkvalue", kFp16}, {"topkindex", kFp16}, {"topkvalue", kFp32}, {"topkindex", kFp32}};
  for (const auto& [name, format] : variants) {
    // 8 candidates along `mb`, the best 4 along `x`, two ranks per core.
    const std::vector<int64_t> stick = {elems_per_stick(format)};
    OpSpec op{.function = name,
              .dims = {{"x", 4, 2}, {"out", 64}, {"mb", 8}},
              .tensors = {{.order = {"mb", "out"}, .stick_sizes = stick, .format = format},
                          {.order = {"x", "out"}, .stick_sizes = stick, .format = format}}};
    OpCase c(op);
    const auto value = [](int64_t i, int64_t lane) { return static_cast<float>((i * 5 + lane) % 4); };
    c.fill(0, [&](const Point& g) { return value(g.at("mb"), g.at("out")); });
    c.run();
    c.expect([&](const Point& g) {
      std::vector<int64_t> order = {0, 1, 2, 3, 4, 5, 6, 7};
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t a, int64_t b) { return value(a, g.at("out")) > value(b, g.at("out")); });
      const int64_t best = order[g.at("x")];
      return name[4] == 'v' ? value(best, g.at("out")) : static_cast<float>(best);
    });
  }
}

TEST(KeepByIndex, ZeroesWhatIsNotListed) {
  OpSpec op{.function = "keepbyindex",
            .dims = {{"mb", 8}, {"out", 64}, {"x", 2}},
            .tensors = {{.order = {"mb", "out"}}, {.order = {"x", "out"}}, {.order = {"mb", "out"}}}};
  OpCase c(op);
  c.fill(0, [](const Point& g) { return static_cast<float>(g.at("mb") + 1); });
  c.fill(1, [](const Point& g) { return static_cast<float>(g.at("x") == 0 ? 3 : g.at("out") % 8); });
  c.run();
  c.expect([](const Point& g) {
    const bool kept = g.at("mb") == 3 || g.at("mb") == g.at("out") % 8;
    return kept ? static_cast<float>(g.at("mb") + 1) : 0.0f;
  });
}

}  // namespace
}  // namespace spyre::testing_artifacts
