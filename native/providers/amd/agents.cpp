#include "providers/amd/agents.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string_view>

#include "providers/amd/chips.h"

namespace leadline::amd {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? std::optional<std::string>(value) : std::nullopt;
}

std::string uuid_text(std::uint64_t uuid) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "GPU-%016llx", static_cast<unsigned long long>(uuid));
  return text.data();
}

// Those that a list such as "2,0" or "GPU-1234..." chooses, in its order; a wrong entry ends the list, as in the
// runtime.
std::vector<std::size_t> chosen(const std::vector<std::size_t>& all, const std::vector<GpuAgent>& agents,
                                const std::optional<std::string>& list, bool* wrong) {
  if (!list) return all;
  std::vector<std::size_t> kept;
  std::string_view rest = *list;
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    const std::string_view entry = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), number);
    if (error == std::errc() && end == entry.data() + entry.size()) {
      *wrong = *wrong || number >= all.size();
      if (number >= all.size()) break;
      kept.push_back(all[number]);
      continue;
    }
    const auto same =
        std::find_if(all.begin(), all.end(), [&](std::size_t at) { return agents[at].info.uuid == entry; });
    *wrong = *wrong || same == all.end();
    if (same == all.end()) break;
    kept.push_back(*same);
  }
  return kept;
}

std::string text(const char* from) { return from ? from : ""; }

const char* link_name(std::int32_t type) {
  return type == sdk::kLinkXgmi ? "xGMI" : type == sdk::kLinkPcie ? "PCIe" : "other";
}

GpuAgent describe(const sdk::Agent& agent) {
  GpuAgent gpu;
  gpu.id = agent.id;
  gpu.architecture = text(agent.name);
  gpu.info.name = text(agent.product_name);
  if (gpu.info.name.empty()) gpu.info.name = gpu.architecture;
  gpu.info.uuid = agent.uuid != 0 ? uuid_text(agent.uuid) : "";
  gpu.info.major = static_cast<std::int32_t>(agent.gfx_target_version / 10000 % 100);
  gpu.info.minor = static_cast<std::int32_t>(agent.gfx_target_version / 100 % 100);
  gpu.info.stepping = static_cast<std::int32_t>(agent.gfx_target_version % 100);
  gpu.info.multiprocessors = static_cast<std::int32_t>(agent.compute_units);
  gpu.info.warp_size = static_cast<std::int32_t>(agent.wave_front_size);
  gpu.info.max_threads_per_multiprocessor =
      static_cast<std::int32_t>(agent.max_waves_per_simd * agent.simds_per_compute_unit * agent.wave_front_size);
  gpu.info.shared_per_multiprocessor = static_cast<std::int32_t>(agent.lds_kib * 1024);
  const auto* banks = static_cast<const sdk::MemoryBank*>(agent.memory_bank_list);
  for (std::uint32_t i = 0; banks && i < agent.memory_banks; ++i) {
    if (banks[i].heap == sdk::kPublicMemory || banks[i].heap == sdk::kPrivateMemory)
      gpu.info.memory_bytes += static_cast<std::int64_t>(banks[i].bytes);
  }
  gpu.simds_per_compute_unit = static_cast<std::int32_t>(agent.simds_per_compute_unit);
  gpu.max_waves_per_simd = static_cast<std::int32_t>(agent.max_waves_per_simd);
  gpu.xccs = static_cast<std::int32_t>(agent.xccs);
  gpu.lds_kib = static_cast<std::int32_t>(agent.lds_kib);
  gpu.hive = agent.hive;
  gpu.node = agent.node;
  const auto* links = static_cast<const sdk::IoLink*>(agent.io_link_list);
  for (std::uint32_t i = 0; links && i < agent.io_links; ++i) {
    gpu.links.push_back({links[i].to_node, -1, links[i].type, links[i].weight, links[i].max_mb_per_s});
  }
  std::array<char, 32> pci{};
  std::snprintf(pci.data(), pci.size(), "%04x:%02x:%02x.%x", agent.domain, agent.location >> 8 & 0xff,
                agent.location >> 3 & 0x1f, agent.location & 7);
  gpu.pci = pci.data();
  return gpu;
}

}  // namespace

Visibility Visibility::of_environment() {
  Visibility seen;
  seen.rocr = variable("ROCR_VISIBLE_DEVICES");
  seen.hip = variable("HIP_VISIBLE_DEVICES");
  if (!seen.hip) seen.hip = variable("CUDA_VISIBLE_DEVICES");
  if (!seen.hip) seen.hip = variable("GPU_DEVICE_ORDINAL");
  return seen;
}

void Agents::load(const void* const* agents, std::size_t count, const Visibility& visibility) {
  std::vector<GpuAgent> all;
  for (std::size_t i = 0; i < count; ++i) {
    sdk::Agent agent{};
    std::uint64_t size = 0;
    std::memcpy(&size, agents[i], sizeof size);
    std::memcpy(&agent, agents[i], std::min<std::size_t>(size, sizeof agent));
    if (agent.type == sdk::AgentType::kGpu) all.push_back(describe(agent));
  }
  // A card in a partition mode shows several devices at one place of the bus, whatever function they have.
  std::map<std::string, std::int32_t> cards;
  const auto card = [](const GpuAgent& gpu) { return gpu.pci.substr(0, gpu.pci.find('.')); };
  for (GpuAgent& gpu : all) gpu.part = cards[card(gpu)]++;
  for (GpuAgent& gpu : all) {
    gpu.parts = cards[card(gpu)];
    gpu.info.partition = gpu.parts > 1;
  }
  std::vector<std::size_t> order(all.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  bool wrong_rocr = false;
  bool wrong_hip = false;
  order = chosen(order, all, visibility.rocr, &wrong_rocr);
  order = chosen(order, all, visibility.hip, &wrong_hip);
  contradiction_.clear();
  if (wrong_hip && visibility.rocr) {
    contradiction_ = "HIP's list of devices (" + *visibility.hip + ") counts among those that ROCR_VISIBLE_DEVICES (" +
                     *visibility.rocr + ") leaves, and names one that is not there, so HIP shows " +
                     std::to_string(order.size()) + " of them; set one of the two only.";
  }
  std::vector<GpuAgent> gpus;
  for (const std::size_t at : order) {
    GpuAgent gpu = all[at];
    gpu.info.index = static_cast<std::int32_t>(gpus.size());
    gpus.push_back(std::move(gpu));
  }
  take(std::move(gpus));
}

// Of links only those between devices that the program sees.
void Agents::take(std::vector<GpuAgent> gpus) {
  for (GpuAgent& gpu : gpus) {
    for (GpuLink& link : gpu.links) {
      const auto to = std::ranges::find(gpus, link.node, &GpuAgent::node);
      link.device = to == gpus.end() ? -1 : to->info.index;
    }
    std::erase_if(gpu.links, [](const GpuLink& link) { return link.device < 0; });
  }
  std::unordered_map<std::uint64_t, std::int32_t> devices;
  for (const GpuAgent& gpu : gpus) devices[gpu.id] = gpu.info.index;
  gpus_ = std::move(gpus);  // all or none: a device without its number would be another one
  devices_ = std::move(devices);
}

const char* Agents::link(std::int32_t from, std::int32_t to) const noexcept {
  if (from < 0 || static_cast<std::size_t>(from) >= gpus_.size()) return nullptr;
  const std::vector<GpuLink>& links = gpus_[static_cast<std::size_t>(from)].links;
  const auto found = std::ranges::find(links, to, &GpuLink::device);
  return found == links.end() ? nullptr : link_name(found->type);
}

namespace {

std::string links_json(const std::vector<GpuLink>& links) {
  std::string text = "[";
  for (const GpuLink& link : links) {
    text += std::string(text.size() > 1 ? ", " : "") + "{\"device\": " + std::to_string(link.device) +
            ", \"type\": \"" + link_name(link.type) + "\", \"weight\": " + std::to_string(link.weight) +
            ", \"mb_per_s\": " + std::to_string(link.mb_per_s) + "}";
  }
  return text + "]";
}

}  // namespace

std::string device_detail_json(const GpuAgent& gpu) {
  const Chip chip = chip_of(gpu.info.major, gpu.info.minor, gpu.info.stepping, gpu.info.warp_size);
  const std::int32_t registers =
      chip.compute_units > 0 ? chip.vgprs * chip.simds * gpu.info.warp_size / chip.compute_units : 0;
  std::array<char, 1024> out{};
  std::snprintf(out.data(), out.size(),
                "{\"vendor\": \"AMD\", \"architecture\": \"%s\", \"compute_units\": %d, \"wavefront\": %d, "
                "\"simds_per_compute_unit\": %d, \"max_waves_per_simd\": %d, \"lds_bytes\": %d, \"xcc\": %d, "
                "\"pci\": \"%s\", \"hive\": \"%llx\", \"partition\": \"%d of %d\", "
                "\"multiprocessors\": %d, \"registers_per_multiprocessor\": %d, "
                "\"shared_bytes_per_multiprocessor\": %d, \"max_threads_per_multiprocessor\": %d, \"links\": ",
                gpu.architecture.c_str(), gpu.info.multiprocessors, gpu.info.warp_size, gpu.simds_per_compute_unit,
                gpu.max_waves_per_simd, gpu.lds_kib * 1024, gpu.xccs, gpu.pci.c_str(),
                static_cast<unsigned long long>(gpu.hive), gpu.part + 1, gpu.parts, gpu.info.multiprocessors, registers,
                gpu.info.shared_per_multiprocessor, gpu.info.max_threads_per_multiprocessor);
  return out.data() + links_json(gpu.links) + "}";
}

}  // namespace leadline::amd
