#include "stack/path_frames.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <new>

#include "base/hash.h"
#include "base/losses.h"

namespace leadline {
namespace {

constexpr size_t kCallersSearched = 12;
constexpr size_t kModulesAround = 16;
constexpr PathFrameId kNoModule{~uint32_t{0}};

// Readers may be anywhere, so a set of roles is replaced whole and never freed; it is set once or twice per session.
const CodeRoles g_no_roles;
std::atomic<const CodeRoles*> g_roles{&g_no_roles};

// Text is kept once, so that its address tells it apart.
uint64_t hash_of(const PathFrame& frame) noexcept {
  const uint64_t text = hash_mix(reinterpret_cast<uintptr_t>(frame.name), reinterpret_cast<uintptr_t>(frame.file));
  const uint64_t lines = uint64_t{static_cast<uint32_t>(frame.line)} << 32 | static_cast<uint32_t>(frame.first_line);
  return hash_mix(hash_mix(text, lines), frame.address);
}

bool equal(const PathFrame& a, const PathFrame& b) noexcept {
  return a.kind == b.kind && a.name == b.name && a.file == b.file && a.line == b.line && a.first_line == b.first_line &&
         a.address == b.address;
}

// Of a text by its last letters and its length: what autograd puts together begins alike.
uint64_t hash_of_ends(const char* text, size_t length) noexcept {
  uint64_t ends[2] = {0, 0};
  if (length >= sizeof ends) {
    std::memcpy(ends, text + length - sizeof ends, sizeof ends);
  } else {
    std::memcpy(ends, text, length);
  }
  return hash_mix(ends[0] ^ length, ends[1]);
}

}  // namespace

PathFrames::PathFrames(const PythonSource* python, ModuleNames* modules, uint32_t max_frames)
    : python_(python),
      modules_(modules),
      max_frames_(max_frames),
      roles_(g_roles.load(std::memory_order_acquire)),
      name_cache_(kNameSlots),
      text_cache_(kTextSlots) {}

void PathFrames::set_roles(const CodeRoles& new_roles) {
  static auto* const kept = new std::deque<CodeRoles>();  // readers may still be in any of them
  static std::mutex changing;
  const std::lock_guard lock(changing);
  kept->push_back(new_roles);
  g_roles.store(&kept->back(), std::memory_order_release);
}

bool PathFrames::is_module_call(uintptr_t code) noexcept {
  const std::vector<CodeRoles::Known>& known = g_roles.load(std::memory_order_acquire)->known;
  return std::any_of(known.begin(), known.end(), [code](const CodeRoles::Known& one) {
    return one.code == code && one.role == CodeRole::kModuleCall;
  });
}

bool PathFrames::adopt_roles() {
  const CodeRoles* now = g_roles.load(std::memory_order_acquire);
  if (now == roles_) return false;
  roles_ = now;
  statements_.clear();
  statement_index_.clear();
  return true;
}

const char* PathFrames::keep(std::string_view text) {
  if (text.empty()) return "";
  const auto found = kept_.find(text);
  if (found != kept_.end()) return found->second;
  text_.emplace_back(text);
  const std::string& kept = text_.back();
  text_bytes_ += kept.size() + sizeof(std::string);
  kept_.emplace(std::string_view(kept), kept.c_str());
  return kept.c_str();
}

PathFrameId PathFrames::add(const PathFrame& frame) {
  frames_.push_back(frame);
  return static_cast<PathFrameId>(frames_.size() - 1);
}

// Whether there is no room for one more; then `instead` stands for all that come.
bool PathFrames::full(FrameKind kind, PathFrameId* instead) {
  if (frames_.size() < max_frames_) return false;
  losses().count(LossKind::kNodesDropped, 1, "more distinct names and lines on one thread than are kept");
  const std::string key{static_cast<char>(kind), '\x02'};
  const auto [found, is_new] = named_.try_emplace(key);
  if (is_new) {
    PathFrame frame;
    frame.kind = kind;
    frame.name = "(names beyond the limit)";
    found->second = add(frame);
  }
  *instead = found->second;
  return true;
}

PathFrameId PathFrames::interned(const PathFrame& frame) {
  const uint64_t hash = hash_of(frame);
  const uint32_t known = frame_index_.find(hash, [&](uint32_t at) { return equal(frames_[at], frame); });
  if (known != IndexTable::kAbsent) return static_cast<PathFrameId>(known);
  PathFrameId id{};
  if (full(frame.kind, &id)) return id;
  if (!frame_index_.reserve_one()) throw std::bad_alloc();
  id = add(frame);
  frame_index_.insert(hash, static_cast<uint32_t>(id));
  return id;
}

PathFrameId PathFrames::native(const NativeText& text) {
  PathFrame frame;
  frame.kind = FrameKind::kNative;
  frame.name = keep(text.name);
  frame.file = keep(text.file);
  frame.module = keep(text.build_id);
  frame.address = text.address;
  return interned(frame);
}

PathFrameId PathFrames::named(FrameKind kind, std::string_view name, std::string_view detail) {
  key_.assign(1, static_cast<char>(kind));
  key_.append(name).push_back('\0');
  key_.append(detail);
  const auto found = named_.find(std::string_view(key_));
  if (found != named_.end()) return found->second;
  PathFrameId instead{};
  if (full(kind, &instead)) return instead;
  PathFrame frame;
  frame.kind = kind;
  frame.name = keep(name);
  frame.detail = keep(detail);
  return named_.emplace(key_, add(frame)).first->second;
}

PathFrameId PathFrames::placed(PathFrameId id, PathFrameId at) {
  const uint64_t key = uint64_t{static_cast<uint32_t>(id)} << 32 | static_cast<uint32_t>(at);
  const auto found = placed_.find(key);
  if (found != placed_.end()) return found->second;
  if (frames_.size() >= max_frames_) return id;
  PathFrame frame = frames_[static_cast<uint32_t>(id)];
  const PathFrame& place = frames_[static_cast<uint32_t>(at)];
  frame.file = place.file;
  frame.line = place.line;
  return placed_.emplace(key, add(frame)).first->second;
}

PathFrameId PathFrames::operator_by_text(const char* name, std::optional<uint16_t> stable, const char* inputs) {
  if (inputs != nullptr) return named(FrameKind::kOperator, name, inputs);
  if (stable) {
    const PathFrameId id = named_at(FrameKind::kOperator, name);
    name_cache_[name_slot(name)].stable = stable;
    return id;
  }
  const size_t length = std::strlen(name);
  TextSlot& slot = text_cache_[hash_of_ends(name, length) & (kTextSlots - 1)];
  if (slot.text != nullptr && slot.length == length && std::memcmp(slot.text, name, length) == 0) return slot.id;
  const PathFrameId id = named(FrameKind::kOperator, std::string_view(name, length));
  const char* const kept = frames_[static_cast<uint32_t>(id)].name;
  if (std::strcmp(kept, name) == 0) slot = {kept, length, id};  // unless one frame stands for many names
  return id;
}

PathFrameId PathFrames::operator_with(const char* name, uint16_t stable, const char* inputs) {
  if (input_cache_.empty()) input_cache_.resize(kInputSlots);
  InputSlot& slot = input_cache_[hash_mix(reinterpret_cast<uintptr_t>(inputs), 0) % kInputSlots];
  if (slot.inputs != inputs || slot.name != name || slot.stable != stable)
    slot = {inputs, name, stable, named(FrameKind::kOperator, name, inputs)};
  return slot.id;
}

PathFrameId PathFrames::named_at(FrameKind kind, const char* name) {
  NameSlot& slot = name_cache_[name_slot(name)];
  const PathFrame* known = slot.pointer == name ? &frames_[static_cast<uint32_t>(slot.id)] : nullptr;
  if (known != nullptr && known->kind == kind && std::strcmp(known->name, name) == 0) return slot.id;
  slot = {name, named(kind, name), std::nullopt};
  return slot.id;
}

const PathFrames::Statement& PathFrames::statement(const RawFrame& raw) {
  const uintptr_t fingerprint = python_->fingerprint(raw.code);
  const uint64_t hash = hash_mix(raw.code, raw.instruction);
  const uint32_t known = statement_index_.find(hash, [&](uint32_t at) {
    return statements_[at].code == raw.code && statements_[at].instruction == raw.instruction;
  });
  if (known != IndexTable::kAbsent) [[likely]] {
    Statement& statement = statements_[known];
    // Otherwise another code object has taken the address: what was known about the statement is void.
    if (statement.fingerprint != fingerprint) statement = learn(raw, fingerprint);
    return statement;
  }
  if (statements_.size() >= kMaxStatements) {  // code that is made over and over: what is still run is soon learned
    statements_.clear();
    statement_index_.clear();
  }
  if (!statement_index_.reserve_one()) throw std::bad_alloc();
  statements_.push_back(learn(raw, fingerprint));
  statement_index_.insert(hash, static_cast<uint32_t>(statements_.size() - 1));
  return statements_.back();
}

PathFrames::Statement PathFrames::learn(const RawFrame& raw, uintptr_t fingerprint) {
  Statement statement{raw.code, raw.instruction, fingerprint};
  statement.suspends = python_->suspends(raw.code);
  for (const CodeRoles::Known& known : roles_->known) {
    if (known.code == raw.code) statement.role = known.role;
  }
  if (statement.role == CodeRole::kHidden || statement.role == CodeRole::kOpener ||
      statement.role == CodeRole::kModuleCall)
    return statement;
  FrameText text;
  python_->describe(raw, &text);
  if (statement.role == CodeRole::kPlain && !roles_->own_package.empty() &&
      text.file.starts_with(roles_->own_package)) {
    statement.role = CodeRole::kOpener;
    return statement;
  }
  const auto holds = [&text](const std::string& folder) { return text.file.starts_with(folder); };
  if (statement.role == CodeRole::kPlain &&
      std::any_of(roles_->hidden_folders.begin(), roles_->hidden_folders.end(), holds)) {
    statement.role = CodeRole::kHidden;
    return statement;
  }
  PathFrame frame;
  frame.kind = FrameKind::kPython;
  const auto is_kept = [this](const std::string& part) { return part.empty() || kept_.contains(part); };
  if (!(is_kept(text.name) && is_kept(text.file)) && full(frame.kind, &statement.frame)) return statement;
  frame.name = keep(text.name);
  frame.file = keep(text.file);
  frame.line = text.line;
  frame.first_line = text.first_line;
  statement.frame = interned(frame);
  return statement;
}

std::optional<PathFrameId> PathFrames::module(uintptr_t object, std::span<const ModuleCall> around, uintptr_t frame) {
  const uint64_t generation = modules_->generation();
  const uintptr_t type = python_->type_of(object);
  if (modules_seen_.size() >= kMaxStatements) modules_seen_.clear();
  const ModuleKey key{object, around.empty() ? kNoModule : around.front().frame};
  ModuleEntry& entry = modules_seen_[key];
  const bool known_before = entry.generation != 0 && entry.type == type;
  if (known_before && entry.generation == generation) return entry.id;
  const bool died = python_->has_died != nullptr && python_->has_died(object);
  if (known_before && died) return entry.id;  // what it was called when it lived
  std::string class_name;
  python_->describe_object(object, &class_name);
  if (class_name.empty()) return std::nullopt;
  uintptr_t objects[kModulesAround];
  const size_t count = std::min(around.size(), kModulesAround);
  for (size_t i = 0; i < count; ++i) objects[i] = around[i].object;
  // Of one that has died nobody is asked: its address may be another module's.
  ModuleNames::Qualified qualified;
  if (!died) qualified = modules_->qualified(object, std::span(objects, count));
  if (qualified.caller != ModuleNames::kNoCaller) {
    const char* const base = frames_[static_cast<uint32_t>(around[qualified.caller].frame)].name;
    qualified.name = qualified.name.empty() ? base : std::string(base) + "." + qualified.name;
  } else if (qualified.complete && !qualified.root_named) {
    std::string variable;
    RawFrame callers[kCallersSearched + 1];
    bool found = false;
    const size_t walked = python_->walk(frame, callers, kCallersSearched + 1, 0, &found);
    for (size_t i = 1; i < walked && i <= kCallersSearched && variable.empty(); ++i) {
      // `self` names whatever object runs, not the model.
      if (!python_->local_name_of(callers[i].frame, qualified.root, &variable) || variable == "self") variable.clear();
    }
    if (variable.empty()) {
      python_->describe_object(qualified.root, &variable);
    } else {
      modules_->try_name_root(qualified.root, variable);
    }
    qualified.name = qualified.name.empty() ? variable : variable + "." + qualified.name;
  }
  if (qualified.name.empty()) qualified.name = class_name;
  const std::string text = "\x01" + qualified.name + '\0' + class_name;
  const auto known = named_.find(std::string_view(text));
  PathFrameId id{};
  if (known != named_.end()) {
    id = known->second;
  } else if (!full(FrameKind::kModule, &id)) {
    PathFrame made;
    made.kind = FrameKind::kModule;
    made.name = keep(qualified.name);
    made.module = keep(class_name);
    id = named_.emplace(text, add(made)).first->second;
  }
  if (qualified.complete) entry = ModuleEntry{generation, type, id};
  return id;
}

size_t PathFrames::held_bytes() const {
  return text_bytes_ + frames_.capacity() * sizeof(PathFrame) + statements_.capacity() * sizeof(Statement) +
         statement_index_.held_bytes() + frame_index_.held_bytes() + named_.size() * 96 +
         name_cache_.size() * sizeof(NameSlot) + text_cache_.size() * sizeof(TextSlot) +
         input_cache_.size() * sizeof(InputSlot);
}

}  // namespace leadline
