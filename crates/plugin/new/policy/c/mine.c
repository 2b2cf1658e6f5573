/* The policy `mine`: so far it is PIAS with three classes (Bai et al., NSDI 2015, section 4). Build:
 *
 *     cc -std=c11 -O2 -fPIC -shared -o mine.so mine.c
 *
 * A flow starts in the first class and moves down one class at each threshold of bytes sent. */
#include "flowloom.h"

static const flowloom_parameter parameters[] = {
    {"first", "43800B", "1B", "1GB", "30 full packets", "The first threshold.", FLOWLOOM_SIZE, 0},
    {"second", "438000B", "1B", "1GB", "300 full packets", "The second threshold.", FLOWLOOM_SIZE, 0},
    {"sent", "false", NULL, NULL, "the scripts of the authors", "Whether bytes sent count, not offsets.", FLOWLOOM_FLAG, 0},
    {"aging", "0", "0", "100", "off", "Consecutive timeouts that return a flow to the first class; 0: none.", FLOWLOOM_INTEGER, 0},
};

struct host {
    uint64_t thresholds[2], sent, aging;
};

/* A flow at its sender. */
struct flow {
    uint64_t open, sent, from, acked, timeouts, end;
};

static struct flow *flow_of(const flowloom_policy_context *cx, uint32_t flow) { return cx->calls->state(cx->handle, flow); }

static int32_t create(const void *context, void *own, const flowloom_endpoint *endpoint, const flowloom_value *values) {
    struct host *host = own;
    (void)context;
    (void)endpoint;
    host->thresholds[0] = values[0].integer;
    host->thresholds[1] = values[1].integer;
    host->sent = values[2].integer;
    host->aging = values[3].integer;
    return FLOWLOOM_OK;
}

static int32_t on_open(void *own, const flowloom_policy_context *cx, uint32_t flow) {
    (void)own;
    flow_of(cx, flow)->open = 1;
    return FLOWLOOM_OK;
}

static int32_t on_send(void *own, const flowloom_policy_context *cx, flowloom_packet *packet) {
    const struct host *host = own;
    packet->prio = 0;
    if (packet->payload == 0)
        return FLOWLOOM_OK;
    struct flow *flow = flow_of(cx, packet->flow);
    uint64_t end = packet->offset + packet->payload;
    if (end > flow->end) { /* A retransmission does not count. */
        flow->sent += packet->payload;
        flow->end = end;
    }
    uint64_t before = packet->offset > flow->from ? packet->offset - flow->from : 0;
    if (host->sent)
        before = flow->sent ? flow->sent - 1 : 0;
    packet->prio = (uint8_t)((host->thresholds[0] <= before) + (host->thresholds[1] <= before));
    return FLOWLOOM_OK;
}

static int32_t on_receive(void *own, const flowloom_policy_context *cx, const flowloom_packet *packet) {
    struct flow *flow = flow_of(cx, packet->flow);
    (void)own;
    if (flow->open && packet->kind == FLOWLOOM_ACK && packet->offset > flow->acked) {
        flow->acked = packet->offset;
        flow->timeouts = 0;
    }
    return FLOWLOOM_OK;
}

static int32_t on_timeout(void *own, const flowloom_policy_context *cx, uint32_t number) {
    const struct host *host = own;
    struct flow *flow = flow_of(cx, number);
    if (host->aging && ++flow->timeouts >= host->aging) {
        flow->sent = flow->timeouts = 0;
        flow->from = flow->acked;
    }
    return FLOWLOOM_OK;
}

static const flowloom_policy table = {
    .head = {
        FLOWLOOM_POLICY_HEAD,
        .name = "mine", .summary = "PIAS with two thresholds, to be changed", .source = "Bai et al., NSDI 2015",
        .parameters = parameters, .parameter_count = sizeof parameters / sizeof *parameters,
        .own_size = sizeof(struct host), .state_size = sizeof(struct flow),
    },
    .uses = FLOWLOOM_USES_CLASSES,
    .create = create, .on_send = on_send, .on_receive = on_receive, .on_open = on_open, .on_timeout = on_timeout,
};

const flowloom_head *flowloom_plugin(void) { return &table.head; }
