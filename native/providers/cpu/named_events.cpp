#include "providers/cpu/named_events.h"

#include <dlfcn.h>
#include <linux/perf_event.h>

#include <array>
#include <charconv>
#include <fstream>
#include <utility>

namespace leadline::cpu {
namespace {

struct PapiName {
  std::string_view papi;
  std::string_view perf;
};
constexpr std::array kPapiNames{
    PapiName{"PAPI_TOT_CYC", "cycles"},
    PapiName{"PAPI_TOT_INS", "instructions"},
    PapiName{"PAPI_REF_CYC", "ref-cycles"},
    PapiName{"PAPI_BR_INS", "branches"},
    PapiName{"PAPI_BR_MSP", "branch-misses"},
    PapiName{"PAPI_L1_LDM", "L1-dcache-load-misses"},
    PapiName{"PAPI_L1_ICM", "L1-icache-load-misses"},
    PapiName{"PAPI_L3_LDM", "LLC-load-misses"},
    PapiName{"PAPI_TLB_IM", "iTLB-load-misses"},
};

std::optional<uint64_t> number(std::string_view text, int base) {
  if (base == 0) {
    const bool hex = text.starts_with("0x") || text.starts_with("0X");
    base = hex ? 16 : 10;
    if (hex) text.remove_prefix(2);
  }
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::string first_line(const std::filesystem::path& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

// A part of a comma-separated list, which is taken away from it.
std::string_view next_part(std::string_view* list) {
  const size_t comma = list->find(',');
  const std::string_view part = list->substr(0, comma);
  list->remove_prefix(comma == std::string_view::npos ? list->size() : comma + 1);
  return part;
}

// `format` is as the kernel writes it: "config:0-7,32-35", the places of the value's bits from the lowest on.
bool put_bits(std::string_view format, uint64_t value, EventCode* code) {
  const size_t colon = format.find(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view word = format.substr(0, colon);
  uint64_t* const target = word == "config"    ? &code->config
                           : word == "config1" ? &code->config1
                           : word == "config2" ? &code->config2
                                               : nullptr;
  if (target == nullptr) return false;
  std::string_view places = format.substr(colon + 1);
  while (!places.empty()) {
    const std::string_view range = next_part(&places);
    const size_t dash = range.find('-');
    const auto low = number(range.substr(0, dash), 10);
    const auto high = dash == std::string_view::npos ? low : number(range.substr(dash + 1), 10);
    if (!low || !high || *low > *high || *high > 63) return false;
    for (uint64_t bit = *low; bit <= *high; ++bit) {
      *target |= (value & 1) << bit;
      value >>= 1;
    }
  }
  return value == 0;  // no room for all of it otherwise
}

// Names of files come from what a user typed.
bool plain(std::string_view name) {
  return !name.empty() && name.find('/') == std::string_view::npos && name[0] != '.';
}

// `event=0x3c,umask=1` or the name of an event that stands for such terms. False where a term means nothing here.
bool put_terms(std::string_view terms, const std::filesystem::path& device, bool named, EventCode* code) {
  while (!terms.empty()) {
    const std::string_view term = next_part(&terms);
    const size_t equals = term.find('=');
    const std::string_view key = term.substr(0, equals);
    if (!plain(key)) return false;
    if (equals == std::string_view::npos && !named) {
      const std::string meant = first_line(device / "events" / key);
      if (!meant.empty()) {
        if (!put_terms(meant, device, true, code)) return false;
        continue;
      }
    }
    const auto value =
        equals == std::string_view::npos ? std::optional<uint64_t>(1) : number(term.substr(equals + 1), 0);
    if (!value) return false;
    const bool whole = key == "config" || key == "config1" || key == "config2";
    const std::string format = whole ? std::string(key) + ":0-63" : first_line(device / "format" / key);
    if (!put_bits(format, *value, code)) return false;
  }
  return true;
}

// The first words of libpfm's own types; it is asked by size, so later members do not matter.
struct PfmPerfArguments {
  perf_event_attr* attributes;
  char** full_name;
  size_t size;
  int index;
  int cpu;
  int flags;
  int padding;
};
constexpr int kPfmUserAndKernel = 0x08 | 0x01;
constexpr int kPfmPerfEvent = 1;

std::optional<EventCode> by_libpfm(const std::string& name, std::string* why) {
  void* const library = dlopen("libpfm.so.4", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    *why = "There is no counter named " + name +
           " among ours, and events of the processor are looked up with libpfm, which is not installed (Debian: "
           "libpfm4); install it, or give the event as rHEX.";
    return std::nullopt;
  }
  const auto initialize = reinterpret_cast<int (*)()>(dlsym(library, "pfm_initialize"));
  const auto encode =
      reinterpret_cast<int (*)(const char*, int, int, void*)>(dlsym(library, "pfm_get_os_event_encoding"));
  const auto say = reinterpret_cast<const char* (*)(int)>(dlsym(library, "pfm_strerror"));
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  PfmPerfArguments arguments{&attributes, nullptr, sizeof(PfmPerfArguments), 0, 0, 0, 0};
  int error = initialize != nullptr && encode != nullptr ? initialize() : -1;
  if (error == 0) error = encode(name.c_str(), kPfmUserAndKernel, kPfmPerfEvent, &arguments);
  if (error == 0) return EventCode{attributes.type, attributes.config, attributes.config1, attributes.config2};
  *why = "This processor has no event named " + name + " (libpfm: " + (say != nullptr ? say(error) : "unusable") +
         "); leave it out.";
  return std::nullopt;
}

bool by_hand(std::string_view name) {
  return name.size() > 1 && name.size() <= 17 && name[0] == 'r' && number(name.substr(1), 16).has_value();
}

}  // namespace

std::string_view perf_name_of_papi(std::string_view name) noexcept {
  for (const PapiName& one : kPapiNames) {
    if (one.papi == name) return one.perf;
  }
  return {};
}

std::optional<EventCode> event_named(const std::string& name, std::string* why, const std::filesystem::path& devices) {
  why->clear();
  if (by_hand(name)) return EventCode{PERF_TYPE_RAW, *number(std::string_view(name).substr(1), 16)};
  if (name.starts_with("PAPI_")) {
    *why = name + " is not one of PAPI's names for a single counter; name the processor's own event (papi_avail -e " +
           name + " shows which).";
    return std::nullopt;
  }
  if (const size_t slash = name.find('/'); slash != std::string::npos) {
    const std::string device = name.substr(0, slash);
    const bool closed = name.size() > slash + 2 && name.back() == '/';
    const auto type = plain(device) ? number(first_line(devices / device / "type"), 10) : std::nullopt;
    EventCode code;
    if (closed && type &&
        put_terms(std::string_view(name).substr(slash + 1, name.size() - slash - 2), devices / device, false, &code)) {
      code.type = static_cast<uint32_t>(*type);
      return code;
    }
    *why = !type ? "This machine has no counters called " + device + ", as " + name + " asks for; see " +
                       devices.string() + "."
                 : "The event " + name + " is not written as PMU/TERM=VALUE,.../ with terms of " +
                       (devices / device / "format").string() + ".";
    return std::nullopt;
  }
  if (name.find(':') != std::string::npos) return by_libpfm(name, why);
  return std::nullopt;
}

}  // namespace leadline::cpu
