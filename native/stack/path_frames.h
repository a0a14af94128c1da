// Distinct frames of one thread's paths, interned: (code, instruction, module object), operator names, region names.
//
// Hits cost a hash of two or three words. Misses decode names and allocate; they happen once per distinct statement.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "base/index_table.h"
#include "base/schema_generated.h"
#include "stack/module_names.h"
#include "stack/native_source.h"
#include "stack/python_source.h"

namespace leadline {

enum class PathFrameId : uint32_t {};

// Text is owned by the table and lives as long as it.
struct PathFrame {
  FrameKind kind = FrameKind::kPython;
  const char* name = "";
  const char* file = "";
  const char* module = "";
  const char* detail = "";
  int32_t line = 0;
  int32_t first_line = 0;
  uint64_t address = 0;  // native frames: within the file, whose build id is in `module`
};

// What a code object means to the path.
enum class CodeRole : uint8_t {
  kPlain,
  kModuleCall,  // nn.Module.__call__: becomes a module frame
  kHidden,      // wrapper that a person does not want to see
  kOpener,      // opens regions: record_function.__enter__, our own package
  kBlockEntry,  // enters `with` blocks for others (contextlib): shows, but what it opens is its caller's
  kRecompute,   // torch.utils.checkpoint running the forward again
};

// Special code objects, found by the Python side by what they are, not by their names.
struct CodeRoles {
  struct Known {
    uintptr_t code;
    CodeRole role;
  };
  std::vector<Known> known;
  std::string own_package;                  // folder whose frames are openers
  std::vector<std::string> hidden_folders;  // of packages whose frames tell a person nothing
};

class PathFrames {
 public:
  // Of one thread. What comes beyond shares one frame per kind, and is counted as nodes_dropped.
  static constexpr uint32_t kMaxFrames = 1u << 18;
  static constexpr uint32_t kMaxStatements = 1u << 18;  // then all are learned anew

  explicit PathFrames(const PythonSource* python, ModuleNames* modules, uint32_t max_frames = kMaxFrames);

  PathFrameId native(const NativeText& text);
  PathFrameId named(FrameKind kind, std::string_view name, std::string_view detail = {});
  // As `id`, with the place of another frame: where a region was opened.
  PathFrameId placed(PathFrameId id, PathFrameId at);
  // As named(), for texts that come again at the same address, such as the names of a driver's functions.
  PathFrameId named_at(FrameKind kind, const char* name);
  // `stable`: where the pointer means this name, a number that stays as long as it does; the text is not looked at
  // again.
  PathFrameId operator_named(const char* name, std::optional<uint16_t> stable, const char* inputs = nullptr) {
    const NameSlot& slot = name_cache_[name_slot(name)];
    if (slot.pointer == name && slot.stable && stable == slot.stable && inputs == nullptr) [[likely]]
      return slot.id;
    return operator_by_text(name, stable, inputs);
  }
  // The same where the pointer of the inputs means their text for good.
  PathFrameId operator_with(const char* name, uint16_t stable, const char* inputs);
  // What is known of a statement; valid until the next call.
  struct Statement {
    uintptr_t code = 0;
    uintptr_t instruction = 0;
    uintptr_t fingerprint = 0;
    PathFrameId frame{};  // of plain statements and recomputation
    CodeRole role = CodeRole::kPlain;
    bool suspends = false;
  };
  const Statement& statement(const RawFrame& raw);
  // A module that is being called, and the frame that shows it.
  struct ModuleCall {
    uintptr_t object = 0;
    PathFrameId frame{};
  };
  // `around`: the modules being called around this one, innermost first: it is named from the first that holds it.
  // `frame`: of the module's call; the frames outside of it are searched for the variable that holds the model.
  // nullopt: what it was cannot be told, since the module and its class have died.
  std::optional<PathFrameId> module(uintptr_t object, std::span<const ModuleCall> around, uintptr_t frame);

  const PathFrame& operator[](PathFrameId id) const { return frames_[static_cast<uint32_t>(id)]; }
  uint32_t size() const { return static_cast<uint32_t>(frames_.size()); }
  size_t held_bytes() const;

  // For all threads. A thread takes them up with adopt_roles(), which says whether they were new: then no statement is
  // known any more.
  static void set_roles(const CodeRoles& roles);
  bool adopt_roles();
  // Signal-safe.
  static bool is_module_call(uintptr_t code) noexcept;

 private:
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };
  struct NameSlot {
    const char* pointer = nullptr;
    PathFrameId id{};
    std::optional<uint16_t> stable;
  };
  struct ModuleEntry {
    uint64_t generation = 0;
    uintptr_t type = 0;  // classes may be exchanged: lazy modules, fully_shard
    PathFrameId id{};
  };
  struct ModuleKey {
    uintptr_t object = 0;
    PathFrameId around{};
    bool operator==(const ModuleKey&) const = default;
  };
  struct ModuleKeyHash {
    size_t operator()(const ModuleKey& key) const noexcept {
      return hash_mix(key.object, static_cast<uint32_t>(key.around));
    }
  };

  static constexpr size_t kNameSlots = 2048;
  static size_t name_slot(const char* pointer) noexcept {
    const auto bits = reinterpret_cast<uintptr_t>(pointer);
    return ((bits >> 3) ^ (bits >> 14)) & (kNameSlots - 1);
  }
  static constexpr size_t kInputSlots = 1024;
  struct InputSlot {
    const char* inputs = nullptr;
    const char* name = nullptr;
    uint16_t stable = 0;
    PathFrameId id{};
  };
  // Names that are put together anew each time, such as autograd's, by what they say.
  struct TextSlot {
    const char* text = nullptr;  // of the frame
    size_t length = 0;
    PathFrameId id{};
  };
  static constexpr size_t kTextSlots = 512;
  [[gnu::hot]] PathFrameId operator_by_text(const char* name, std::optional<uint16_t> stable, const char* inputs);
  const char* keep(std::string_view text);
  bool full(FrameKind kind, PathFrameId* instead);
  PathFrameId add(const PathFrame& frame);
  PathFrameId interned(const PathFrame& frame);
  Statement learn(const RawFrame& raw, uintptr_t fingerprint);

  const PythonSource* python_;
  ModuleNames* modules_;
  uint32_t max_frames_;
  const CodeRoles* roles_;
  std::deque<std::string> text_;
  std::unordered_map<std::string_view, const char*> kept_;
  std::vector<PathFrame> frames_;
  std::unordered_map<std::string, PathFrameId, TextHash, std::equal_to<>> named_;
  std::string key_;  // of the last look-up by name; kept for its memory
  std::vector<NameSlot> name_cache_;
  std::vector<TextSlot> text_cache_;
  std::vector<InputSlot> input_cache_;  // empty where no shapes are recorded
  std::vector<Statement> statements_;
  IndexTable statement_index_;
  IndexTable frame_index_;  // frames of statements and native ones, by content
  std::unordered_map<uint64_t, PathFrameId> placed_;
  std::unordered_map<ModuleKey, ModuleEntry, ModuleKeyHash> modules_seen_;
  size_t text_bytes_ = 0;
};

}  // namespace leadline
