#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "spyre/device/exec/finding.h"
#include "spyre/device/exec/footprint.h"
#include "spyre/device/exec/interpreter.h"
#include "spyre/device/exec/memory_shape.h"
#include "spyre/device/exec/pad_value.h"
#include "spyre/device/exec/padding_flow.h"
#include "spyre/device/exec/shadow_memory.h"

/// The card's sanitizer. It lives as long as a card, is told of everything that touches memory *before* it
/// happens, and keeps, for every stick of device memory and of each core's scratchpad, who wrote it last and
/// as what. From that it finds what the executors let pass because a card would: see `Rule`.
///
///     runtime:   note_alloc, note_host_write, note_free
///     launch:    begin_launch, check_execute for each execute in order, end_launch -> findings
///
/// It works on runs of sticks, never on elements, never reads memory, and never changes what is executed: a
/// program runs the same with and without it. `run_checked` (checked_run.h) drives it and an executor
/// together.
///
/// How buffers are told apart. Artifacts name no buffers, only addresses, so a write makes a *record*: which
/// execute wrote which tensor, its shape in memory, which core holds which coordinates, what its padding
/// holds. Sticks point to records. A read then must find sticks of one record, or of several that were
/// written beside each other or as slices of one buffer; anything else is a buffer with another one written
/// over it.
///
/// What it cannot see: a buffer wholly replaced by another of the same shape after its first reader; which
/// rows a gather reads or a scatter writes (the table counts as initialised by the first scatter into it).
namespace spyre::exec {

class Checker {
 public:
  explicit Checker(const Machine& machine = spyre_card()) : machine_(machine), records_(1) {}

  // ---- what the host does. Names appear in findings.
  void note_alloc(uint64_t address, uint64_t bytes, std::string name);
  void note_free(uint64_t address);
  /// The host wrote whole sticks, padding zero, as staging does.
  void note_host_write(uint64_t address, uint64_t bytes, std::string name);

  // ---- what a launch does.
  /// Learns from the launch specification where arguments are and how large; contents of arguments that are
  /// only outputs are forgotten.
  void begin_launch(const DeviceProgram& program, const LaunchValues& launch);
  /// The launch goes on with the program of its next bundle: what the ones before left is still there.
  void next_bundle(const DeviceProgram& program, const LaunchValues& launch);
  /// Between begin_launch and end_launch.
  bool launching() const { return launching_; }
  void check_execute(const BoundOp& bound);
  /// Nobody may rely any more on what is in the scratchpads: a bundle ended that was not marked non-terminal.
  void forget_lx();
  /// Everything found since this bundle began; the launch goes on.
  std::vector<Finding> end_bundle() { return std::exchange(findings_, {}); }
  /// Looks at the outputs. Returns everything found since `begin_launch`, in order.
  std::vector<Finding> end_launch();
  /// The launch stopped early: what was found until then, outputs not looked at.
  std::vector<Finding> abandon_launch();

 private:
  /// One write: by an execute (all its cores) or by the host.
  struct Record {
    Party who;
    Residence memory = Residence::kHbm;
    bool from_host = false;
    DataFormat format = DataFormat::INVALID;
    MemoryShape shape;
    StickRun hull;                ///< from the first stick written to the last; in LX the same on every core
    std::map<int, int64_t> held;  ///< LX: by core id, the first stick of the buffer that the core holds
    int64_t sequence = 0;         ///< unlike its number, never used again
    std::set<int64_t> overwrote;  ///< sequence numbers of records that lost sticks to it
    std::set<int64_t> updated;    ///< those of them of which nobody had read more: buffers in use
    int64_t written = 0;          ///< sticks, of all cores
    int64_t sticks = 0;           ///< that still point here
    StickRun read;                ///< what its readers touched, this and beyond it; empty: nobody read it
  };
  /// A part of device memory with an owner.
  struct Region {
    int64_t begin = 0, end = 0;
    std::string name;
    const LaunchArg* arg = nullptr;  ///< of this launch
    bool is_pool = false;
    bool own = false;  ///< a pool that the program brings itself
    bool contains(int64_t address) const { return address >= begin && address < end; }
  };
  /// What was learned about one input of an execute.
  struct Input {
    PaddedInput padding;                      ///< by dim of the op
    DataFormat format = DataFormat::INVALID;  ///< as written, where one op wrote it
    std::set<uint32_t> left_over;             ///< records that count as nobody's: of buffers before this one
  };

  ShadowMemory& shadow(Residence memory, int core) { return memory == Residence::kHbm ? hbm_ : lx_[core]; }
  uint32_t new_record(Record record);
  void write_sticks(ShadowMemory& memory, const StickRun& run, uint32_t number);
  const Region* region_of(int64_t address) const;
  /// The region of an argument of this launch; none in LX or elsewhere.
  const Region* argument_at(Residence memory, int64_t address) const;
  /// How the buffer lies that a record wrote; of what the host wrote, the argument at `address` says so.
  MemoryShape buffer_of(const Record& record, Residence memory, int64_t address) const;
  void add_region(Region region, int64_t bytes);
  void add_regions(const DeviceProgram& program, const LaunchValues& launch);

  Party party(const BoundOp& bound, int tensor, int core) const;
  void report(Rule rule, const BoundOp& bound, int tensor, int core, StickRun where, std::string detail,
              std::optional<Party> other = {});
  void add(Finding finding);

  void find_sticks(const BoundOp& bound);
  void check_starts(const BoundOp& bound, int tensor);
  bool check_place(const BoundOp& bound, int tensor, int core, const Footprint& sticks);
  void check_against_region(const BoundOp& bound, int tensor);
  Input check_input(const BoundOp& bound, int tensor);
  std::optional<Box> without_gap(const BoundOp& bound, int tensor, int core) const;
  std::optional<Box> without_odd_end(const BoundOp& bound, int tensor, int core);
  std::optional<Box> without_square_end(const BoundOp& bound, int tensor, int core);
  std::vector<uint32_t> left_over(const BoundOp& bound, const ShadowMemory& memory, const Footprint& sticks,
                                  const std::vector<uint32_t>& found) const;
  void check_found(const BoundOp& bound, int tensor, int core, const StickRun& hull,
                   const std::vector<uint32_t>& found);
  void check_clobber(const BoundOp& bound, int tensor, int core, const std::vector<uint32_t>& found);
  void check_held(const BoundOp& bound, int tensor, int core, const Record& record, const StickRun& hull);
  void check_missing(const BoundOp& bound, int tensor, int core, const MemoryShape* gaps, const Input& input,
                     Input& result);
  void learn(const BoundOp& bound, int tensor, const std::vector<uint32_t>& found, Input& input) const;
  void check_in_place(const BoundOp& bound);
  void check_padding(const BoundOp& bound, const std::vector<Input>& inputs);
  void write_output(const BoundOp& bound, const std::vector<Input>& inputs);
  void check_overwritten(const BoundOp& bound, int core, const StickRun& run, const Record& fresh,
                         uint32_t number);
  void check_outputs();

  const Machine& machine_;
  ShadowMemory hbm_;
  std::map<int, ShadowMemory> lx_;
  std::vector<Record> records_;  // [0] stands for "nobody"
  std::vector<uint32_t> spare_;  // slots that no stick points to
  std::map<int64_t, Region> allocations_;

  /// Of the execute being checked, [tensor][core position]; empty where it leaves memory, which is reported.
  std::vector<std::vector<Footprint>> sticks_;
  int64_t launch_ = 0, sequence_ = 0;
  bool launching_ = false;
  std::deque<LaunchArg> args_;  // of this launch; regions point into it
  std::vector<Region> regions_;
  std::vector<uint32_t> dropped_;  // records of this launch without sticks; their slots are spare after it
  std::vector<Finding> findings_;
  std::map<std::tuple<Rule, std::string, std::string>, size_t> known_;
};

}  // namespace spyre::exec
