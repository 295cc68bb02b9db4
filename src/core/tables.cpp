#include "src/core/tables.h"

#include "src/core/status.h"

namespace plait::impl {

namespace {

constexpr dtype_row dtypes[] = {
    {PLAIT_F64, "f64", 64, kind::floating, PLAIT_F64},
    {PLAIT_F32, "f32", 32, kind::floating, PLAIT_F32},
    {PLAIT_F16, "f16", 16, kind::floating, PLAIT_F16},
    {PLAIT_BF16, "bf16", 16, kind::floating, PLAIT_BF16},
    {PLAIT_E4M3, "e4m3", 8, kind::floating, PLAIT_E4M3},
    {PLAIT_C128, "c128", 128, kind::complex, PLAIT_F64},
    {PLAIT_C64, "c64", 64, kind::complex, PLAIT_F32},
    {PLAIT_I32, "i32", 32, kind::integer, PLAIT_I32},
    {PLAIT_I64, "i64", 64, kind::integer, PLAIT_I64},
    {PLAIT_I8, "i8", 8, kind::integer, PLAIT_I8},
    {PLAIT_I16, "i16", 16, kind::integer, PLAIT_I16},
    {PLAIT_B1, "b1", 1, kind::bit, PLAIT_B1},
};

struct role_row {
    plait_role role;
    const char *name;
};
constexpr role_row roles[] = {
    {PLAIT_X, "x"},
    {PLAIT_Y, "y"},
    {PLAIT_W, "w"},
    {PLAIT_BIAS, "bias"},
    {PLAIT_SIGNS, "signs"},
    {PLAIT_DIAG, "diag"},
    {PLAIT_OVERFLOW, "overflow"},
    {PLAIT_FACTOR, "factor"},
    {PLAIT_ROWS, "rows"},
    {PLAIT_DIAG_IN, "diag_in"},
    {PLAIT_DIAG_MID, "diag_mid"},
    {PLAIT_AMAX, "amax"},
    {PLAIT_SCALES, "scales"},
    {PLAIT_HISTOGRAM, "histogram"},
    {PLAIT_Q, "q"},
    {PLAIT_K, "k"},
    {PLAIT_V, "v"},
    {PLAIT_G, "g"},
    {PLAIT_BETA, "beta"},
    {PLAIT_O, "o"},
    {PLAIT_A_LOG, "a_log"},
    {PLAIT_DT_BIAS, "dt_bias"},
    {PLAIT_RESERVE, "reserve"},
    {PLAIT_STATE_IN, "state_in"},
    {PLAIT_STATE_OUT, "state_out"},
    {PLAIT_STATE, "state"},
    {PLAIT_POSITION, "position"},
    {PLAIT_SLOTS, "slots"},
    {PLAIT_CU_SEQLENS, "cu_seqlens"},
    {PLAIT_SEQ_IDX, "seq_idx"},
    {PLAIT_STATUS, "status"},
    {PLAIT_DX, "dx"},
    {PLAIT_DY, "dy"},
    {PLAIT_DW, "dw"},
    {PLAIT_DBIAS, "dbias"},
    {PLAIT_DQ, "dq"},
    {PLAIT_DK, "dk"},
    {PLAIT_DV, "dv"},
    {PLAIT_DG, "dg"},
    {PLAIT_DBETA, "dbeta"},
    {PLAIT_DO, "do"},
    {PLAIT_DA_LOG, "da_log"},
    {PLAIT_DDT_BIAS, "ddt_bias"},
    {PLAIT_DSTATE_IN, "dstate_in"},
    {PLAIT_DSTATE_OUT, "dstate_out"},
};

constexpr factor_row factors[] = {
    {PLAIT_H1, "", 1},
    {PLAIT_H12_PALEY2, "h12p2", 12},
    {PLAIT_H12_SLOANE, "h12s", 12},
    {PLAIT_H20_WILLIAMSON, "h20w", 20},
    {PLAIT_H28_WILLIAMSON, "h28w", 28},
    {PLAIT_H40, "h40", 40},
    {PLAIT_H4_REGULAR, "h4r", 4},
    {PLAIT_H20_PALEY1, "h20p1", 20},
    {PLAIT_H28_PALEY2, "h28p2", 28},
    {PLAIT_H36_PALEY2, "h36p2", 36},
    {PLAIT_H52_WILLIAMSON, "h52w", 52},
    {PLAIT_H60_PALEY1, "h60p1", 60},
    {PLAIT_H108_PALEY1, "h108p1", 108},
    {PLAIT_H116_WILLIAMSON, "h116w", 116},
    {PLAIT_H124_WILLIAMSON, "h124w", 124},
    {PLAIT_H140_PALEY1, "h140p1", 140},
    {PLAIT_H156_WILLIAMSON, "h156w", 156},
    {PLAIT_H172_WILLIAMSON, "h172w", 172},
};

} // namespace

const dtype_row *find_dtype(plait_dtype dtype) {
    for (const dtype_row &row : dtypes)
        if (row.dtype == dtype) return &row;
    return nullptr;
}

std::optional<plait_dtype> dtype_from_name(std::string_view name) {
    for (const dtype_row &row : dtypes)
        if (row.name == name) return row.dtype;
    return std::nullopt;
}

std::string dtype_names() {
    std::string all;
    for (const dtype_row &row : dtypes) (all += all.empty() ? "" : " ") += row.name;
    return all;
}

const dtype_row &dtype_of(plait_dtype dtype) {
    const dtype_row *row = find_dtype(dtype);
    if (!row) fail(PLAIT_ERR_INTERNAL, "dtype ", dtype, " reached the runtime unchecked");
    return *row;
}

const char *role_name(plait_role role) {
    for (const role_row &row : roles)
        if (row.role == role) return row.name;
    return nullptr;
}

std::optional<plait_role> role_from_name(std::string_view name) {
    for (const role_row &row : roles)
        if (row.name == name) return row.role;
    return std::nullopt;
}

std::string factor_names() {
    std::string out;
    for (const factor_row &row : factors)
        if (row.order > 1) out += (out.empty() ? "" : " ") + std::string(row.name);
    return out;
}

const factor_row *find_factor(plait_wht_factor factor) {
    for (const factor_row &row : factors)
        if (row.factor == factor) return &row;
    return nullptr;
}

std::optional<plait_wht_factor> factor_from_name(std::string_view name) {
    for (const factor_row &row : factors)
        if (row.order > 1 && row.name == name) return row.factor;
    return std::nullopt;
}

const char *backend_name(plait_backend backend) {
    switch (backend) {
    case PLAIT_CPU: return "cpu";
    case PLAIT_CUDA: return "cuda";
    }
    return nullptr;
}

const char *rigor_name(plait_rigor rigor) {
    switch (rigor) {
    case PLAIT_ESTIMATE: return "estimate";
    case PLAIT_MEASURE: return "measure";
    case PLAIT_EXHAUSTIVE: return "exhaustive";
    }
    return nullptr;
}

} // namespace plait::impl
