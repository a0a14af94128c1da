// leadline._xla: bytes in, plain Python values out; conversions only.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "xla/buffers.h"
#include "xla/dataflow.h"
#include "xla/hlo.h"
#include "xla/module_values.h"
#include "xla/opcodes.h"
#include "xla/origins.h"
#include "xla/space.h"
#include "xla/window.h"

namespace nb = nanobind;
using namespace leadline::xla;

namespace {

// A compiled program, and how its operations came to be.
class Program {
 public:
  explicit Program(const nb::bytes& bytes) {
    std::string copy(view(bytes));
    std::string problem;
    {
      const nb::gil_scoped_release no_gil;
      module_ = std::make_unique<Module>(std::move(copy), &problem);
      if (problem.empty()) finder_ = std::make_unique<OriginFinder>(*module_);
    }
    if (!problem.empty()) throw nb::value_error(problem.c_str());
  }

  const Module& module() const { return *module_; }

  // None: the program has no operation of this name. Else (opcode, rung, parts).
  nb::object origins(const std::string& operation) const {
    const uint32_t row = module_->find(operation);
    if (row == kNone) return nb::none();
    const Origins found = finder_->find(row);
    nb::list parts;
    for (const Origin& part : found.parts) {
      nb::list frames;
      for (const SourceFrame& frame : module_->stack(part.stack))
        frames.append(nb::make_tuple(text(frame.file), text(frame.function), frame.line));
      parts.append(nb::make_tuple(nb::tuple(frames), text(part.op_name), text(part.opcode), part.share));
    }
    static constexpr const char* kRungs[] = {"own", "inside", "same name", "moved", "user", "operand", "nothing"};
    return nb::make_tuple(text(module_->instructions()[row].opcode), kRungs[static_cast<size_t>(found.rung)], parts);
  }

  // Names of operations that run others, which are seen by themselves.
  nb::list control_flow() const {
    nb::list names;
    for (const Instruction& instruction : module_->instructions()) {
      if (is_control_flow(instruction.opcode)) names.append(text(instruction.name));
    }
    return names;
  }

  // Operations of the entry computation that take time: each runs once whenever the program does.
  nb::list entry() const {
    nb::list names;
    if (module_->entry() == kNone) return names;
    const Range range = module_->computations()[module_->entry()].instructions;
    for (uint32_t row = range.from; row < range.from + range.count; ++row) {
      const Instruction& instruction = module_->instructions()[row];
      if (!is_free(instruction.opcode)) names.append(text(instruction.name));
    }
    return names;
  }

  // Of each computation that runs by itself [(operation, opcode)], in the order of its schedule; the entry is the
  // first.
  nb::list schedules() const {
    nb::list all;
    for (const std::vector<uint32_t>& rows : leadline::xla::schedules(*module_)) {
      nb::list one;
      for (const uint32_t row : rows) {
        const Instruction& instruction = module_->instructions()[row];
        one.append(nb::make_tuple(text(instruction.name), text(instruction.opcode)));
      }
      all.append(one);
    }
    return all;
  }

  // Of XLA's assignment of buffers: (bytes, whether those are alive together at the peak, [(operation, bytes)]).
  nb::tuple temporaries(const nb::bytes& assignment, size_t most) const {
    const Temporaries found = leadline::xla::temporaries(view(assignment));
    std::unordered_map<int64_t, std::string_view> names;
    for (const Instruction& instruction : module_->instructions()) names.emplace(instruction.id, instruction.name);
    nb::list buffers;
    for (size_t i = 0; i < found.buffers.size() && i < most; ++i) {
      const Buffer& buffer = found.buffers[i];
      const auto known = names.find(buffer.instruction);
      buffers.append(nb::make_tuple(text(known == names.end() ? buffer.name : known->second), buffer.bytes));
    }
    return nb::make_tuple(found.bytes, found.at_peak, buffers);
  }

  // ([operation], [maker, user, maker, user, ...]): places in the list, of what is seen running.
  nb::tuple dataflow() const {
    const Dataflow found = leadline::xla::dataflow(*module_);
    nb::list names;
    nb::list edges;
    for (const uint32_t row : found.operations) names.append(text(module_->instructions()[row].name));
    for (const uint32_t place : found.edges) edges.append(place);
    return nb::make_tuple(names, edges);
  }

 private:
  std::unique_ptr<Module> module_;
  std::unique_ptr<OriginFinder> finder_;
};

// ([(program, operation, count, total_ps, self_ps, min_ps, max_ps, sum_squares, device, stream, work)], [(program,
// module, run, device, start_ps, end_ps, operations, on_device, once, whole)], problem); device and stream of
// operations are -1 on threads of the host. `expected`: by program the names of operations that run once, how many of
// them a whole run has, and on how many devices.
nb::tuple fold(const nb::bytes& bytes, const nb::dict& control, const nb::dict& expected) {
  ControlFlow others;
  std::vector<std::string> kept;
  for (const auto& [program, names] : control) {
    for (const nb::handle name : names) kept.push_back(nb::cast<std::string>(name));
  }
  size_t next = 0;
  for (const auto& [program, names] : control) {
    for (size_t i = 0; i < nb::len(names); ++i) others[nb::cast<int64_t>(program)].insert(kept[next++]);
  }
  WholeRuns whole;
  std::deque<std::string> once;  // whose texts stay where they are
  for (const auto& [program, of_program] : expected) {
    const auto facts = nb::cast<nb::tuple>(of_program);
    Expected& made = whole[nb::cast<int64_t>(program)];
    for (const nb::handle name : facts[0]) made.once.insert(once.emplace_back(nb::cast<std::string>(name)));
    made.operations = nb::cast<uint64_t>(facts[1]);
    made.devices = nb::cast<uint64_t>(facts[2]);
  }
  std::string problem;
  std::unique_ptr<Space> space;
  Window window;
  {
    const nb::gil_scoped_release no_gil;
    space = std::make_unique<Space>(view(bytes), window_wanted(), &problem);
    window = sums(*space, others, whole);
  }
  nb::list operations;
  for (const OperationSum& sum : window.operations) {
    operations.append(nb::make_tuple(sum.program, text(space->strings()[sum.operation]), sum.count, sum.total_ps,
                                     sum.self_ps, sum.min_ps, sum.max_ps, sum.sum_squares,
                                     std::max<int64_t>(sum.device, -1), std::max<int64_t>(sum.stream, -1),
                                     text(space->strings()[sum.work])));
  }
  nb::list runs;
  for (const ProgramRun& run : window.runs) {
    runs.append(nb::make_tuple(run.program, text(space->strings()[run.module]), run.run, run.device, run.start_ps,
                               run.end_ps, run.operations, run.on_device, run.once, run.whole));
  }
  return nb::make_tuple(operations, runs, problem);
}

// The memory of a column, handed over: anything that reads buffers (`memoryview`, `numpy.asarray`) has it without a
// copy.
template <typename T>
nb::object buffer_of(std::vector<T>&& column) {
  auto owned = std::make_unique<std::vector<T>>(std::move(column));
  const size_t size = owned->size();
  T* data = owned->data();
  nb::capsule owner(owned.release(), [](void* held) noexcept { delete static_cast<std::vector<T>*>(held); });
  return nb::cast(nb::ndarray<nb::memview, T, nb::ndim<1>>(data, {size}, owner));
}

// A whole profile: {planes: [(name, {stat: text})], lines: [(plane, id, name, device, stream)], programs: [(id, name,
// module)], strings, complaints, hosts, base_ns, problem, events: {column: buffer}, stats: {column: buffer}}. Columns
// of events: line and name as uint32, start_ps and duration_ps; of stats each number asked for as int64 (its smallest:
// not said), each text as uint32 (0: not said). A statistic that no event has is not among the stats.
nb::dict profile(const nb::bytes& bytes, const std::vector<std::string>& numbers,
                 const std::vector<std::string>& texts) {
  std::string problem;
  std::unique_ptr<Space> space;
  {
    const nb::gil_scoped_release no_gil;
    space = std::make_unique<Space>(view(bytes), Wanted{numbers, texts}, &problem);
  }
  nb::list programs;
  for (const Space::Program& program : space->programs())
    programs.append(
        nb::make_tuple(program.id, text(program.name), nb::bytes(program.module.data(), program.module.size())));
  nb::list strings;
  for (const std::string& string : space->strings()) strings.append(text(string));
  nb::list complaints;
  for (const std::string_view complaint : space->complaints()) complaints.append(text(complaint));
  nb::list hosts;
  for (const std::string_view host : space->hosts()) hosts.append(text(host));
  Space::Events from = space->take_events();
  nb::dict events;
  events["line"] = buffer_of(std::move(from.line));
  events["name"] = buffer_of(std::move(from.name));
  events["start_ps"] = buffer_of(std::move(from.start_ps));
  events["duration_ps"] = buffer_of(std::move(from.duration_ps));
  nb::dict stats;
  for (size_t column = 0; column < numbers.size(); ++column) {
    if (!from.numbers[column].empty())
      stats[nb::str(numbers[column].c_str())] = buffer_of(std::move(from.numbers[column]));
  }
  for (size_t column = 0; column < texts.size(); ++column) {
    if (!from.texts[column].empty()) stats[nb::str(texts[column].c_str())] = buffer_of(std::move(from.texts[column]));
  }
  nb::dict found;
  found["planes"] = planes_of(*space);
  found["lines"] = lines_of(*space);
  found["programs"] = programs;
  found["strings"] = strings;
  found["complaints"] = complaints;
  found["hosts"] = hosts;
  found["base_ns"] = space->base_ns();
  found["problem"] = problem;
  found["events"] = events;
  found["stats"] = stats;
  return found;
}

}  // namespace

NB_MODULE(_xla, m) {
  nb::set_leak_warnings(false);  // the interpreter may end while programs are known
  m.doc() = "Compiled programs and profiles of XLA.";
  nb::class_<Program>(m, "Program")
      .def(nb::init<const nb::bytes&>())
      .def_prop_ro("name", [](const Program& program) { return text(program.module().name()); })
      .def_prop_ro("id", [](const Program& program) { return program.module().id(); })
      .def_prop_ro("has_stacks", [](const Program& program) { return program.module().has_stacks(); })
      .def_prop_ro("donated", [](const Program& program) { return program.module().aliases(); })
      .def_prop_ro("instructions", [](const Program& program) { return program.module().instructions().size(); })
      .def_prop_ro("parameters",
                   [](const Program& program) {
                     nb::list all;
                     for (const Parameter& parameter : program.module().parameters())
                       all.append(nb::make_tuple(text(parameter.name), text(parameter.shape)));
                     return all;
                   })
      .def_prop_ro("files",
                   [](const Program& program) {
                     nb::list all;
                     for (const std::string_view file : program.module().files()) all.append(text(file));
                     return all;
                   })
      .def_prop_ro("control_flow", &Program::control_flow)
      .def_prop_ro("entry", &Program::entry)
      .def("temporaries", &Program::temporaries, nb::arg("assignment"), nb::arg("most"))
      .def("dataflow", &Program::dataflow)
      .def("schedules", &Program::schedules)
      .def("origins", &Program::origins, nb::arg("operation"));
  add_graph_window(m);
  m.def("fold", &fold, nb::arg("bytes"), nb::arg("control"), nb::arg("expected") = nb::dict());
  m.def("profile", &profile, nb::arg("bytes"), nb::arg("numbers"), nb::arg("texts"));
}
