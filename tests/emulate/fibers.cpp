#include "tests/emulate/fibers.h"

#include <cstdint>
#include <new>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#    include <sanitizer/common_interface_defs.h>
#endif

// swapcontext asks the system for the signal mask at every switch, which is nearly all of its time;
// six registers in a few nanoseconds do as well where nobody handles signals.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
#    define PLAIT_FAST_SWITCH
asm(R"(
    .text
    .globl plait_switch_stack
    .hidden plait_switch_stack
    .type plait_switch_stack, @function
plait_switch_stack:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size plait_switch_stack, . - plait_switch_stack
)");
extern "C" void plait_switch_stack(void **save, void *to);
#endif

namespace plait::emulation {

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr size_t stack_bytes = size_t{1} << 18; // red zones around every variable
#else
constexpr size_t stack_bytes = size_t{1} << 16;
#endif

/// Below each stack lies a page that nobody may touch.
size_t pitch() { return stack_bytes + static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

fibers *starting = nullptr;

} // namespace

struct fibers::context {
#ifdef PLAIT_FAST_SWITCH
    void *top = nullptr;
#else
    ucontext_t registers{};
#endif
    const void *stack = nullptr;
    size_t bytes = 0;
    void *shadow = nullptr; ///< what AddressSanitizer keeps of a stack that does not run
};

fibers::fibers(int count, void (*entry)())
    : count_(count), entry_(entry), all_(new context[static_cast<size_t>(count) + 1]) {
    const size_t all = pitch() * static_cast<size_t>(count);
    void *got = mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) throw std::bad_alloc();
    memory_ = static_cast<char *>(got);
    for (int i = 0; i < count; ++i) {
        char *stack = memory_ + pitch() * static_cast<size_t>(i + 1) - stack_bytes;
        if (mprotect(stack, stack_bytes, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
        all_[static_cast<size_t>(i)].stack = stack;
        all_[static_cast<size_t>(i)].bytes = stack_bytes;
        restart(i);
    }
}

fibers::~fibers() { munmap(memory_, pitch() * static_cast<size_t>(count_)); }

void fibers::restart(int which) {
    context &c = all_[static_cast<size_t>(which)];
#ifdef PLAIT_FAST_SWITCH
    // what plait_switch_stack pops: six registers, where to go, and a caller for the debugger
    void **top = reinterpret_cast<void **>(memory_ + pitch() * static_cast<size_t>(which + 1)) - 8;
    for (int i = 0; i < 8; ++i) top[i] = nullptr;
    top[6] = reinterpret_cast<void *>(&start);
    c.top = top;
#else
    getcontext(&c.registers);
    c.registers.uc_stack.ss_sp = const_cast<void *>(c.stack);
    c.registers.uc_stack.ss_size = c.bytes;
    c.registers.uc_link = nullptr;
    makecontext(&c.registers, &start, 0);
#endif
    c.shadow = nullptr;
}

void fibers::start() {
    fibers &all = *starting;
#if defined(__SANITIZE_ADDRESS__)
    context &caller = all.all_[static_cast<size_t>(all.count_)];
    __sanitizer_finish_switch_fiber(nullptr, &caller.stack, &caller.bytes);
#endif
    all.entry_();
}

void fibers::change(context &from, context &to) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&from.shadow, to.stack, to.bytes);
#endif
#ifdef PLAIT_FAST_SWITCH
    plait_switch_stack(&from.top, to.top);
#else
    swapcontext(&from.registers, &to.registers);
#endif
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(from.shadow, nullptr, nullptr);
#endif
}

void fibers::run(int which) {
    starting = this;
    current_ = which;
    change(all_[static_cast<size_t>(count_)], all_[static_cast<size_t>(which)]);
}

void fibers::pause() {
    change(all_[static_cast<size_t>(current_)], all_[static_cast<size_t>(count_)]);
}

} // namespace plait::emulation
