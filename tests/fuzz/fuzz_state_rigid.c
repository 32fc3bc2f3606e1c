/* fuzz_state_rigid.c - any bytes whatever given to fsi_rigid_load, with and without a header and checksum that fit,
   and a good state with
   bytes of its own changed; what is accepted must step, stay finite and save again.
   SPDX-License-Identifier: MIT

   clang -g -O1 -fsanitize=fuzzer,address,undefined tests/fuzz/fuzz_state_rigid.c -o fuzz_state_rigid -lm && ./fuzz_state_rigid -max_len=4096 */
#define FSI_IMPLEMENTATION
#include "../../fsi_rigid.h"
#include "../kit/rigid_worlds.h"
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(x) do { if (!(x)) { fprintf(stderr, "violated: %s\n", #x); abort(); } } while (0)

static const double DT = 1e-3; /* the step that what was loaded must take [s] */

/* What a moment or a force, at the end of its lever, may turn a link by in the step [rad]. */
static double turned(const fsi_rigid *w, int id, double moment, double force)
{
    const fsi__rg_impl *im = fsi__rg_of(w);
    return (fabs(moment) + fabs(force) * im->solid[id].reach) * fsi__rg_turned_by(&im->record[id]) * DT * DT;
}

/* May links of a tree turn by more than a radian in the step? What they do to each other grows as their rates squared
   and is found by three passes of a fixed point, each of which multiplies rates by rate times dt: then they may go
   anywhere. */
static int links_whirl(const fsi_rigid *w, int tree)
{
    const fsi_rigid_tree *t = fsi_rigid_tree_at(w, tree);
    const int turns = t->root == 6 ? 3 : t->root == 3; /* the root's turns stand before its way */
    double turn = 0;
    int k;
    for (k = 0; k < turns; k++) turn += fabs((double)t->rate[k]) * DT;
    for (k = 0; k < t->link_count; k++) {
        const int id = t->body[k], c = t->column[k], slides = t->joint[k] == FSI_RIGID_PRISMATIC;
        const fsi__jt_joint *link = &fsi__rg_of(w)->tree[tree]->link[k];
        const fsi__rg_record *r = &fsi__rg_of(w)->record[id];
        const double force = (double)fsi_v3_norm(fsi_v3_add(w->force[id], r->once_force));
        turn += turned(w, id, (double)fsi_v3_norm(fsi_v3_add(w->torque[id], r->once_torque)), force);
        turn += turned(w, id, slides ? 0 : link->force, slides ? link->force : 0);
        if (c < 0 || slides) continue;
        turn += fabs((double)t->rate[c]) * DT;
        if (t->scripted[c]) turn += fabs(fsi__jt_script(link, w->time + DT) - (double)t->q[c]);
    }
    return turn > 1;
}

/* Does anything move so fast, or lie so far off, that a step may leave the range of numbers? */
static int is_extreme(const fsi_rigid *w)
{
    int id, k, extreme = 0;
    for (id = 0; id < w->count; id++) if (w->body[id]) {
        const fsi_body *b = w->body[id];
        const fsi__rg_record *r = &fsi__rg_of(w)->record[id];
        extreme |= (double)fsi_v3_norm(b->velocity) > 1e5 || (double)fsi_v3_norm(b->angular_velocity) > 1e5 || (double)fsi_v3_norm(b->pose.position) > 5e8;
        const fsi_vec3 way = fsi_v3_sub(r->target.position, b->pose.position);
        const fsi_vec3 force = fsi_v3_add(w->force[id], r->once_force);
        const fsi_vec3 torque = fsi_v3_add(w->torque[id], r->once_torque);
        extreme |= r->has_target && (double)fsi_v3_norm(way) > 1e5 * DT; /* what goes there in the step */
        extreme |= (double)fsi_v3_norm(force) > 1e6 * (double)b->mass || (double)fsi_v3_norm(torque) > 1e3;
    }
    for (id = 0; id < w->tree_count; id++) {
        const fsi_rigid_tree *t = fsi_rigid_tree_at(w, id);
        if (t) extreme |= links_whirl(w, id);
        for (k = 0; t && k < t->link_count; k++) extreme |= fabs(fsi__rg_of(w)->tree[id]->link[k].force) > 1e3 || (t->scripted[t->column[k] < 0 ? 0 : t->column[k]] && fabs(fsi__rg_of(w)->tree[id]->link[k].target) > 100);
        for (k = 0; t && k < t->coordinates; k++) extreme |= fabs((double)t->q[k]) > 1e5 || fabs((double)t->rate[k]) > 1e5;
    }
    return extreme;
}

/* A step may refuse what a load took only for where it would bring a body: further or faster than any may be, in that time; or as links
   that turn so fast do not take a step so long: their inertia is lost in rounding. */
static int is_refused_for_its_way(const fsi_rigid *w, fsi_status status)
{
    const char *message = fsi_rigid_error(w)->message;
    if (status == FSI_ERROR_SINGULAR) return strstr(message, "inertia is singular") != NULL;
    return status == FSI_ERROR_LIMIT && (strstr(message, "would be faster") || strstr(message, "would be farther") || strstr(message, "would make it") || strstr(message, "target asks for"));
}

static void try_load(fsi_rigid *w, const void *buffer, size_t size)
{
    const uint64_t before = fsi_rigid_hash(w);
    uint64_t loaded;
    fsi_status status;
    size_t need = 0;
    int id, extreme;
    if (fsi_rigid_load(w, buffer, size) != FSI_OK) {
        MUST(fsi_rigid_hash(w) == before);
        return;
    }
    MUST(fsi_rigid_save(w, NULL, 0, &need) == FSI_OK && need == size);
    extreme = is_extreme(w);
    loaded = fsi_rigid_hash(w);
    status = fsi_rigid_step(w, (fsi_real)DT);
    if (status != FSI_OK) {
        if (!extreme || !is_refused_for_its_way(w, status)) fprintf(stderr, "step: %s\n", fsi_rigid_error(w)->message);
        MUST(extreme && is_refused_for_its_way(w, status));
        MUST(fsi_rigid_hash(w) == loaded);
    }
    for (id = 0; id < w->count; id++) MUST(!w->body[id] || (fsi_v3_is_finite(w->body[id]->pose.position) && fsi_v3_is_finite(w->body[id]->velocity)));
}

/* Worlds are made once; each starts from one of the states that it had itself. */
enum { STATES = 5 };
static struct { fsi_context context; fsi_rigid *w; unsigned char *state[STATES]; size_t size[STATES]; } bench[2];

static void make_bench(void)
{
    int k, b;
    for (b = 0; b < 2; b++) {
        bench[b].context = fsi_default_context();
        bench[b].w = make_small_world(&bench[b].context, 2 + b);
        MUST(bench[b].w);
        for (k = 0; k < STATES; k++) {
            MUST(fsi_rigid_save(bench[b].w, NULL, 0, &bench[b].size[k]) == FSI_OK);
            bench[b].state[k] = (unsigned char *)malloc(bench[b].size[k]);
            MUST(bench[b].state[k] && fsi_rigid_save(bench[b].w, bench[b].state[k], bench[b].size[k], &bench[b].size[k]) == FSI_OK);
            MUST(fsi_rigid_step(bench[b].w, (fsi_real)0.03) == FSI_OK);
        }
    }
}

/* data: 3 bytes each, where and by what: changes to such a state. */
static void try_changes(fsi_rigid *w, const unsigned char *from, size_t need, const uint8_t *data, size_t size)
{
    static const double evil[8] = { -1, 1e300, 1e30, 1e9, -1e-300, 0, 1, 1e-5 };
    fsi__state_header header;
    unsigned char *state = (unsigned char *)malloc(need);
    size_t k;
    MUST(state);
    memcpy(state, from, need);
    for (k = 0; k + 3 <= size; k += 3) {
        const size_t at = sizeof header + ((size_t)data[k] << 8 | data[k + 1]) % (need - sizeof header);
        if (data[k + 2] < 8 && at + 8 <= need) memcpy(state + at, &evil[data[k + 2]], 8);
        else state[at] = data[k + 2];
    }
    header = fsi__make_state_header(w->cookie, need - sizeof header, fsi_hash(state + sizeof header, need - sizeof header, 0));
    memcpy(state, &header, sizeof header);
    try_load(w, state, need);
    free(state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int b = size > 0 ? data[0] & 1 : 0, k = size > 0 ? (data[0] >> 1) % STATES : 0;
    fsi__state_header header;
    unsigned char *whole = (unsigned char *)malloc(size + sizeof header);
    fsi_rigid *w;
    if (!bench[0].w) make_bench();
    w = bench[b].w;
    MUST(whole && fsi_rigid_load(w, bench[b].state[k], bench[b].size[k]) == FSI_OK);
    try_load(w, data, size);
    header = fsi__make_state_header(w->cookie, size, fsi_hash(data, size, 0));
    memcpy(whole, &header, sizeof header);
    if (size) memcpy(whole + sizeof header, data, size);
    try_load(w, whole, size + sizeof header);
    free(whole);
    if (size > 1) try_changes(w, bench[b].state[k], bench[b].size[k], data + 1, size - 1);
    return 0;
}
