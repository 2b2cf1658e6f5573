/* The congestion control `mine`: so far it is DCTCP (RFC 8257 section 3). Build:
 *
 *     cc -std=c11 -O2 -fPIC -shared -o mine.so mine.c
 *
 * All numbers are whole: alpha is in parts per billion, the window in bytes, both rounded down. */
#include "flowloom.h"

#define ONE UINT64_C(1000000000)

/* A product of two words has 128 bits. */
__extension__ typedef unsigned __int128 wide;

static uint64_t most_of(uint64_t a, uint64_t b) { return a > b ? a : b; }

static const flowloom_parameter parameters[] = {
    {"g", "0.0625", "0.000000001", "1", "SIGCOMM 2010 section 4, Linux: 1/16",
     "Gain: the weight of one window of observation in alpha.", FLOWLOOM_FRACTION, 0},
    {"alpha", "1", "0", "1", "Linux", "Initial value of alpha.", FLOWLOOM_FRACTION, 0},
    {"min_cwnd", "1", "1", "2", "ns-2; Linux: 2", "Smallest window in segments after a mark.", FLOWLOOM_INTEGER, 0},
};

/* The controller of a host. */
struct controller {
    uint64_t smss, g, alpha, min_cwnd;
};

/* The state of a flow. */
struct state {
    uint64_t owed;       /* growth of congestion avoidance that is not yet in the window, in bytes times the window */
    uint64_t alpha;
    uint64_t window_end; /* end of the window of observation, as an offset */
    uint64_t acked, marked; /* bytes acknowledged in it, and those with a mark */
};

static int32_t create(const void *context, void *own, const flowloom_host *host, const flowloom_value *values) {
    struct controller *c = own;
    (void)context;
    c->smss = host->smss;
    c->g = values[0].integer;
    c->alpha = values[1].integer;
    c->min_cwnd = values[2].integer * host->smss;
    return FLOWLOOM_OK;
}

static int32_t open(const void *own, void *state, const flowloom_flow *flow) {
    const struct controller *c = own;
    struct state *s = state;
    (void)flow;
    s->alpha = c->alpha;
    return FLOWLOOM_OK;
}

static int32_t inherit(const void *own, void *state, const void *before) {
    (void)own;
    ((struct state *)state)->alpha = ((const struct state *)before)->alpha;
    return FLOWLOOM_OK;
}

/* RFC 8257 section 3.3, steps 4 to 8: once per window, and so kept out of on_ack. */
__attribute__((noinline)) static int32_t end_window(const struct controller *c, struct state *s, const flowloom_ack *ack) {
    uint64_t fraction = (uint64_t)((wide)s->marked * ONE / s->acked);
    s->alpha = (s->alpha * (ONE - c->g) + fraction * c->g) / ONE;
    s->window_end = ack->snd_nxt;
    s->acked = s->marked = 0;
    return FLOWLOOM_OK;
}

static int32_t on_ack(const void *own, void *state, flowloom_window *window, const flowloom_ack *ack) {
    const struct controller *c = own;
    struct state *s = state;
    if (ack->may_change && ack->window_limited) {
        if (window->cwnd < window->ssthresh) {
            window->cwnd += ack->slow_start;
        } else {
            /* One segment per window of bytes acknowledged. */
            uint64_t cwnd = window->cwnd;
            s->owed += c->smss * ack->acked;
            window->cwnd += s->owed / cwnd;
            s->owed %= cwnd;
        }
    }
    /* Steps 1 to 3. */
    s->acked += ack->acked;
    s->marked += ack->ece ? ack->acked : 0;
    return ack->snd_una > s->window_end ? end_window(c, s, ack) : FLOWLOOM_OK;
}

static int32_t on_mark(const void *own, void *state, const flowloom_window *window, const flowloom_ack *ack, uint64_t *cwnd) {
    const struct controller *c = own;
    const struct state *s = state;
    (void)ack;
    /* Step 9. */
    *cwnd = most_of((uint64_t)((wide)window->cwnd * (2 * ONE - s->alpha) / (2 * ONE)), c->min_cwnd);
    return FLOWLOOM_OK;
}

static int32_t on_loss(const void *own, void *state, const flowloom_window *window, const flowloom_loss *loss, uint64_t *ssthresh) {
    const struct controller *c = own;
    (void)state;
    (void)window;
    /* RFC 5681 eq. 4. */
    *ssthresh = most_of(loss->flight / 2, 2 * c->smss);
    return FLOWLOOM_OK;
}

static const flowloom_congestion table = {
    .head =
        {
            FLOWLOOM_CONGESTION_HEAD,
            .name = "mine",
            .summary = "DCTCP, to be changed",
            .source = "RFC 8257",
            .parameters = parameters,
            .parameter_count = sizeof parameters / sizeof *parameters,
            .own_size = sizeof(struct controller),
            .state_size = sizeof(struct state),
        },
    .ecn = FLOWLOOM_ECN_EXACT,
    .shares = 1, /* nothing is in global or static variables */
    .create = create,
    .open = open,
    .on_ack = on_ack,
    .on_loss = on_loss,
    .on_mark = on_mark,
    .inherit = inherit,
};

const flowloom_head *flowloom_plugin(void) { return &table.head; }
