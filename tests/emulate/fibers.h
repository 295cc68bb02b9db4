// Stacks that one thread of the system runs in turn.
#pragma once

#include <cstddef>
#include <memory>

namespace plait::emulation {

class fibers {
public:
    /// `entry` must not return: a fiber that is done pauses and is not run any more.
    fibers(int count, void (*entry)());
    ~fibers();
    fibers(const fibers &) = delete;
    fibers &operator=(const fibers &) = delete;

    int count() const { return count_; }
    /// The next run() of this one begins at `entry`, whatever it was doing.
    void restart(int which);
    void run(int which); ///< until it pauses
    void pause();        ///< called on a fiber: run() returns

private:
    struct context;
    static void change(context &from, context &to);
    char *stack(int which) const; ///< its lowest byte

    int count_;
    void (*entry_)();
    char *memory_;
    std::unique_ptr<context[]> all_; ///< the last one is the caller of run()
    int current_ = -1;
};

} // namespace plait::emulation
