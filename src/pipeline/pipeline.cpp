#include "src/pipeline/pipeline.h"

#include "src/core/checked.h"

namespace plait::impl {

namespace {

int64_t total(const std::vector<step> &steps, int64_t step::*field, const char *what) {
    int64_t sum = 0;
    for (const step &s : steps) sum = checked_add(sum, s.*field, what);
    return sum;
}

} // namespace

int64_t pipeline::bytes_read() const { return total(steps, &step::bytes_read, "bytes read"); }
int64_t pipeline::bytes_written() const {
    return total(steps, &step::bytes_written, "bytes written");
}
int64_t pipeline::flops() const { return total(steps, &step::flops, "flops"); }

} // namespace plait::impl
