// JSON as it is written, two blanks a level. No tree: nlohmann's allocates where it is destroyed,
// and an exception for lack of memory that meets another one ends the process.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace plait::impl {

class json_text {
public:
    /// `key` is nullptr in arrays and for the outermost object.
    void open(const char *key, char bracket) {
        begin(key);
        out_ += bracket;
        levels_ += bracket == '{' ? '}' : ']';
        fresh_ = true;
    }
    void close() {
        const char bracket = levels_.back();
        levels_.pop_back();
        if (!fresh_) new_line();
        out_ += bracket;
        fresh_ = false;
    }
    /// Numbers and strings; a scalar of nlohmann's needs no memory for its end.
    template <class T> void value(const char *key, const T &what) {
        begin(key);
        out_ += nlohmann::json(what).dump();
    }
    const std::string &text() const { return out_; }

private:
    void new_line() {
        out_ += '\n';
        out_.append(2 * levels_.size(), ' ');
    }
    void begin(const char *key) {
        if (!fresh_) out_ += ',';
        if (!levels_.empty()) new_line();
        fresh_ = false;
        if (!key) return;
        out_ += '"';
        out_ += key; // ours: nothing to escape
        out_ += "\": ";
    }

    std::string out_;
    std::string levels_; ///< the brackets that are still to come
    bool fresh_ = true;  ///< nothing stands in this level yet
};

} // namespace plait::impl
