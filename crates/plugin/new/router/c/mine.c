/* The router `mine`: so far, after a pause of more than `gap`, a flow takes the next hop at whose port the fewest bytes wait. Build:
 *
 *     cc -std=c11 -O2 -fPIC -shared -o mine.so mine.c
 *
 * Flowlets: Kandula et al., "Dynamic Load Balancing Without Packet Reordering", CCR 2007. */
#include "flowloom.h"

#define FLOWLETS 1024

static const flowloom_parameter parameters[] = {
    {"gap", "100us", "0s", "1s", "the longest round trip of most networks", "Pause that ends a flowlet.", FLOWLOOM_TIME, 0},
};

/* The router of the network. */
struct router {
    uint64_t gap;
};

/* The state of a switch: flows share a flowlet by the hash of their five-tuple. */
struct state {
    struct {
        uint64_t link, last_ps;
        uint64_t used;
    } flowlets[FLOWLETS];
};

static int32_t create(const void *context, void *own, const flowloom_network *network, const flowloom_value *values) {
    struct router *r = own;
    (void)context, (void)network;
    r->gap = values[0].integer;
    return FLOWLOOM_OK;
}

static int32_t decide(const void *own, void *state, const flowloom_hop *hop, const flowloom_packet *packet,
                      const flowloom_candidate *candidates, uint64_t count, uint64_t *index) {
    const struct router *r = own;
    struct state *s = state;
    uint32_t at = hop->hash % FLOWLETS;
    uint64_t best = count;
    (void)packet;
    if (s->flowlets[at].used && hop->now_ps - s->flowlets[at].last_ps <= r->gap)
        for (uint64_t i = 0; i < count; i++)
            if (candidates[i].link == s->flowlets[at].link)
                best = i;
    /* A new flowlet, or the link of the old one is down. */
    if (best == count) {
        best = 0;
        for (uint64_t i = 1; i < count; i++)
            if (candidates[i].waiting < candidates[best].waiting)
                best = i;
    }
    s->flowlets[at].used = 1;
    s->flowlets[at].link = candidates[best].link;
    s->flowlets[at].last_ps = hop->now_ps;
    *index = best;
    return FLOWLOOM_OK;
}

static const flowloom_router table = {
    .head =
        {
            FLOWLOOM_ROUTER_HEAD,
            .name = "mine",
            .summary = "each flowlet begins at the shortest queue, to be changed",
            .source = "Kandula et al., CCR 2007",
            .parameters = parameters,
            .parameter_count = sizeof parameters / sizeof *parameters,
            .own_size = sizeof(struct router),
            .state_size = sizeof(struct state),
        },
    .decides = FLOWLOOM_BOTH_WAYS,
    .loads = 1,
    .create = create,
    .decide = decide,
};

const flowloom_head *flowloom_plugin(void) { return &table.head; }
