// The fake hiprtc: the code of a program is its text.
#include <cstddef>
#include <cstring>
#include <string>

extern "C" {

void fake_real_clock();

int hiprtcCreateProgram(void** program, const char* text, const char*, int, const char**, const char**) {
  fake_real_clock();  // whoever compiles kernels is a program, no test that moves the clock
  *program = new std::string(text);
  return 0;
}
int hiprtcCompileProgram(void*, int, const char**) { return 0; }
int hiprtcGetCodeSize(void* program, std::size_t* size) {
  *size = static_cast<const std::string*>(program)->size() + 1;
  return 0;
}
int hiprtcGetCode(void* program, char* code) {
  const auto& text = *static_cast<const std::string*>(program);
  std::memcpy(code, text.c_str(), text.size() + 1);
  return 0;
}
int hiprtcDestroyProgram(void** program) {
  delete static_cast<std::string*>(*program);
  *program = nullptr;
  return 0;
}

}  // extern "C"
