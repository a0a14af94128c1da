#include "session/providers.h"

#include "providers/accelerator/provider.h"
#include "providers/amd/provider.h"
#include "providers/cpu/provider.h"
#include "providers/nvidia/provider.h"
#include "providers/pjrt/provider.h"
#include "providers/torch/provider.h"
#include "session/session.h"

namespace leadline {

std::vector<Provider*>& providers() {
  static auto* const all = new std::vector<Provider*>{
      &torch::Provider::instance(),     &nvidia::session_provider(), &amd::session_provider(),
      &accelerator::session_provider(), &pjrt::session_provider(),   &cpu::Provider::instance(),
  };
  return *all;
}

Provider* find_provider(std::string_view name) {
  for (Provider* provider : providers()) {
    if (name == provider->name()) return provider;
  }
  return nullptr;
}

namespace {

ProviderStatus unknown(const std::string& name) {
  return {{"ok", false}, {"message", "This build of Leadline has no provider named " + name + "."}};
}

}  // namespace

ProviderStatus Session::start_provider(const std::string& name, std::map<std::string, ProviderOption> own) {
  Provider* provider = find_provider(name);
  if (provider == nullptr) return unknown(name);
  ProviderOptions options;
  {
    const std::lock_guard lock(writing_);
    options.memory = options_.memory;
    options.shapes = options_.shapes;
  }
  options.describe_device = [this](DeviceDescription device) { describe_device(std::move(device)); };
  options.own = std::move(own);
  const std::lock_guard lock(providers_busy_);
  return provider->start(options);
}

void Session::describe_device(DeviceDescription device) {
  if (const auto collector = this->collector()) collector->devices().describe(std::move(device));
}

void Session::explain_program(std::uint64_t program, CompiledFrame frame) {
  if (const auto collector = this->collector()) collector->compiled().put_program(program, std::move(frame));
}

void Session::explain_operation(std::uint64_t program, std::string operation, const CompiledParts& parts) {
  if (const auto collector = this->collector()) collector->compiled().put(program, std::move(operation), parts);
}

std::set<UnknownOperation> Session::unexplained_operations() const {
  const auto collector = this->collector();
  return collector ? unknown_operations(collector->trees(), collector->compiled()) : std::set<UnknownOperation>();
}

std::map<std::uint64_t, std::uint64_t> Session::titled_runs() const {
  const auto collector = this->collector();
  return collector ? leadline::titled_runs(collector->trees()) : std::map<std::uint64_t, std::uint64_t>();
}

ProviderStatus Session::stop_provider(const std::string& name) {
  Provider* provider = find_provider(name);
  if (provider == nullptr) return unknown(name);
  const std::lock_guard lock(providers_busy_);
  provider->stop();
  return provider->status();
}

void Session::rest_provider(const std::string& name, bool rests) noexcept {
  if (Provider* const provider = find_provider(name)) provider->rest(rests);
}

ProviderStatus Session::provider_status(const std::string& name) const {
  const Provider* provider = find_provider(name);
  if (provider == nullptr) return unknown(name);
  const std::lock_guard lock(providers_busy_);
  return provider->status();
}

void Session::stop_providers() noexcept {
  const std::lock_guard lock(providers_busy_);
  std::vector<Provider*>& all = providers();
  for (auto provider = all.rbegin(); provider != all.rend(); ++provider) (*provider)->stop();
}

void Session::pause_providers() noexcept {
  const std::lock_guard lock(providers_busy_);
  for (Provider* provider : providers()) provider->pause();
}

void Session::resume_providers() noexcept {
  const std::lock_guard lock(providers_busy_);
  for (Provider* provider : providers()) provider->resume();
}

}  // namespace leadline
