// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/algorithms.hpp"

namespace rankmesh::shm {

// Each is defined in the file of its name.
extern const Algorithm all_gather;
extern const Algorithm all_gather_v;
extern const Algorithm all_reduce_flat;
extern const Algorithm all_reduce_split;
extern const Algorithm all_to_all;
extern const Algorithm all_to_all_v;
extern const Algorithm barrier;
extern const Algorithm broadcast;
extern const Algorithm direct_reduce;
extern const Algorithm direct_reduce_scatter;
extern const Algorithm gather;
extern const Algorithm gather_v;
extern const Algorithm reduce;
extern const Algorithm reduce_scatter;
extern const Algorithm reduce_scatter_v;
extern const Algorithm scatter;
extern const Algorithm scatter_v;
extern const Algorithm symmetric_all_gather;
extern const Algorithm symmetric_all_reduce;
extern const Algorithm symmetric_all_to_all;
extern const Algorithm symmetric_broadcast;
extern const Algorithm symmetric_reduce_scatter;

constexpr std::array<Choices, operation_count> algorithms{{
    /* barrier        */ {&barrier},
    /* broadcast      */ {&symmetric_broadcast, &broadcast},
    /* reduce         */ {&direct_reduce, &reduce},
    /* all_reduce     */ {&symmetric_all_reduce, &all_reduce_flat, &all_reduce_split},
    /* all_gather     */ {&symmetric_all_gather, &all_gather},
    /* reduce_scatter */ {&symmetric_reduce_scatter, &direct_reduce_scatter, &reduce_scatter},
    /* gather         */ {&gather},
    /* scatter        */ {&scatter},
    /* all_to_all     */ {&symmetric_all_to_all, &all_to_all},
    /* send           */ {},
    /* recv           */ {},
    /* send_recv      */ {},
}};

constexpr std::array<const Algorithm*, operation_count> small_algorithms{
    &barrier,        &broadcast, &reduce,  &all_reduce_flat, &all_gather,
    &reduce_scatter, &gather,    &scatter, &all_to_all,
};

constexpr std::array<const Algorithm*, operation_count> algorithms_of_blocks{
    nullptr,           nullptr,   nullptr,    nullptr,       &all_gather_v,
    &reduce_scatter_v, &gather_v, &scatter_v, &all_to_all_v,
};

}  // namespace rankmesh::shm
