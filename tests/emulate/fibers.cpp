#include "tests/emulate/fibers.h"

#include <cstdint>
#include <new>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

// swapcontext asks the system for the signal mask at every switch, which is nearly all of its time;
// six registers in a few nanoseconds do as well where nobody handles signals.
#if defined(__x86_64__) && !defined(PLAIT_PORTABLE_FIBERS)
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

constexpr size_t stack_bytes = size_t{1} << 16;

/// Below each stack lies a page that nobody may touch.
size_t pitch() { return stack_bytes + static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

} // namespace

struct fibers::context {
#ifdef PLAIT_FAST_SWITCH
    void *top = nullptr;
#else
    ucontext_t registers{};
#endif
};

fibers::fibers(int count, void (*entry)())
    : count_(count), entry_(entry), all_(new context[static_cast<size_t>(count) + 1]) {
    const size_t all = pitch() * static_cast<size_t>(count);
    void *got = mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) throw std::bad_alloc();
    memory_ = static_cast<char *>(got);
    for (int i = 0; i < count; ++i) {
        if (mprotect(stack(i), stack_bytes, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
        restart(i);
    }
}

fibers::~fibers() { munmap(memory_, pitch() * static_cast<size_t>(count_)); }

char *fibers::stack(int which) const {
    return memory_ + pitch() * static_cast<size_t>(which + 1) - stack_bytes;
}

void fibers::restart(int which) {
    context &c = all_[static_cast<size_t>(which)];
#ifdef PLAIT_FAST_SWITCH
    // what plait_switch_stack pops: six registers, where to go, and a caller for the debugger
    void **top = reinterpret_cast<void **>(stack(which) + stack_bytes) - 8;
    for (int i = 0; i < 8; ++i) top[i] = nullptr;
    top[6] = reinterpret_cast<void *>(entry_);
    c.top = top;
#else
    getcontext(&c.registers);
    c.registers.uc_stack.ss_sp = stack(which);
    c.registers.uc_stack.ss_size = stack_bytes;
    c.registers.uc_link = nullptr;
    makecontext(&c.registers, entry_, 0);
#endif
}

void fibers::change(context &from, context &to) {
#ifdef PLAIT_FAST_SWITCH
    plait_switch_stack(&from.top, to.top);
#else
    swapcontext(&from.registers, &to.registers);
#endif
}

void fibers::run(int which) {
    current_ = which;
    change(all_[static_cast<size_t>(count_)], all_[static_cast<size_t>(which)]);
}

void fibers::pause() {
    change(all_[static_cast<size_t>(current_)], all_[static_cast<size_t>(count_)]);
}

} // namespace plait::emulation
