// The web page of llama-server, left out. Upstream generates this header from
// the built page; the server asks it for files and finds none.
#pragma once

#include <array>
#include <cstddef>
#include <string>

struct llama_ui_asset {
    std::string           name;
    const unsigned char * data;
    std::size_t           size;
    std::string           etag;
    std::string           type;
};

inline const llama_ui_asset * llama_ui_find_asset(const std::string & /*name*/) {
    return nullptr;
}

inline const std::array<llama_ui_asset, 0> & llama_ui_get_assets() {
    static const std::array<llama_ui_asset, 0> none{};
    return none;
}

inline bool llama_ui_use_gzip() {
    return false;
}
