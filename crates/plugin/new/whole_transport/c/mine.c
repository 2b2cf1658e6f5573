/* The transport `mine`: so far it is stop and wait (RFC 1350 section 2). Build:
 *
 *     cc -std=c11 -O2 -fPIC -shared -o mine.so mine.c
 *
 * A flow has one packet in the network, and sends the next one when this packet is acknowledged. */
#include "flowloom.h"

static const flowloom_parameter parameters[] = {
    {"rto", "10ms", "1us", "60s", "as TCP's min_rto", "Retransmission timeout.", FLOWLOOM_TIME, 0},
};
static const flowloom_counter counters[] = {{"repeats", "packets", "Retransmitted packets."}};

/* The timer of a flow. */
#define RTO 0

/* A host: the queue of flows that are ready to send. Numbers are one more than those of flows; 0 is none. */
struct host {
    uint64_t header, rto, mss;
    uint32_t first, last;
};

/* A flow at its sender. */
struct flow {
    uint64_t acked, sent_at, rtt;
    uint32_t in_flight, again, queued, next;
};

static struct flow *flow_of(const flowloom_context *cx, uint32_t flow) { return cx->calls->state(cx->handle, flow); }

static void make_ready(struct host *host, const flowloom_context *cx, uint32_t flow) {
    struct flow *own = flow_of(cx, flow);
    if (own->queued)
        return;
    own->queued = 1;
    own->next = 0;
    if (host->last)
        flow_of(cx, host->last - 1)->next = flow + 1;
    else
        host->first = flow + 1;
    host->last = flow + 1;
}

/* Takes a flow out of the queue. */
static int32_t give_up(void *own, const flowloom_context *cx, uint32_t flow) {
    struct host *host = own;
    uint32_t *link = &host->first, before = 0;
    while (*link && *link != flow + 1) {
        before = *link;
        link = &flow_of(cx, *link - 1)->next;
    }
    if (*link) {
        *link = flow_of(cx, flow)->next;
        if (host->last == flow + 1)
            host->last = before;
    }
    return FLOWLOOM_OK;
}

static int32_t create(const void *context, void *own, const flowloom_endpoint *endpoint, const flowloom_value *values) {
    struct host *host = own;
    (void)context;
    host->header = endpoint->header;
    host->mss = endpoint->mtu - endpoint->header;
    host->rto = values[0].integer;
    return FLOWLOOM_OK;
}

static int32_t on_flow(void *own, const flowloom_context *cx, uint32_t flow) {
    make_ready(own, cx, flow);
    return FLOWLOOM_OK;
}

static int32_t on_packet(void *own, const flowloom_context *cx, const flowloom_packet *packet) {
    struct host *host = own;
    if (packet->kind == FLOWLOOM_DATA) {
        flowloom_delivery delivery;
        flowloom_packet ack = {.flow = packet->flow, .kind = FLOWLOOM_ACK, .wire_len = (uint16_t)host->header};
        cx->calls->deliver(cx->handle, packet->flow, packet->offset, packet->payload, &delivery);
        ack.offset = delivery.next;
        return cx->calls->control(cx->handle, &ack);
    }
    struct flow *flow = flow_of(cx, packet->flow);
    if (packet->offset <= flow->acked)
        return FLOWLOOM_OK; /* a late duplicate */
    if (!flow->again)
        flow->rtt = cx->now_ps - flow->sent_at;
    flow->acked = packet->offset;
    flow->in_flight = flow->again = 0;
    if (cx->calls->payload(cx->handle, packet->flow, flow->acked) == 0) {
        give_up(host, cx, packet->flow);
        return cx->calls->close(cx->handle, packet->flow);
    }
    cx->calls->disarm(cx->handle, packet->flow, RTO);
    make_ready(host, cx, packet->flow);
    return FLOWLOOM_OK;
}

static int32_t on_timer(void *own, const flowloom_context *cx, uint32_t kind, uint32_t number) {
    struct flow *flow = flow_of(cx, number);
    (void)kind;
    flow->in_flight = 0;
    flow->again = 1;
    cx->calls->timeout(cx->handle, number);
    cx->calls->count(cx->handle, number, 0, 1);
    make_ready(own, cx, number);
    return FLOWLOOM_OK;
}

static int32_t poll(void *own, const flowloom_context *cx, flowloom_packet *packet) {
    struct host *host = own;
    if (!host->first)
        return FLOWLOOM_NOTHING;
    uint32_t number = host->first - 1;
    struct flow *flow = flow_of(cx, number);
    host->first = flow->next;
    if (!host->first)
        host->last = 0;
    flow->queued = 0;
    flow->in_flight = (uint32_t)cx->calls->payload(cx->handle, number, flow->acked);
    flow->sent_at = cx->now_ps;
    packet->flow = number;
    packet->offset = flow->acked;
    packet->payload = (uint16_t)flow->in_flight;
    packet->wire_len = (uint16_t)(packet->payload + host->header);
    packet->flags = flow->again ? FLOWLOOM_RETX : 0;
    return cx->calls->arm(cx->handle, number, RTO, cx->now_ps + host->rto);
}

static int32_t sample(const void *own, const void *state, uint32_t number, flowloom_sample *sample) {
    const struct flow *flow = state;
    (void)number;
    sample->cwnd = ((const struct host *)own)->mss;
    if (flow) {
        sample->srtt_ps = flow->rtt;
        sample->in_flight = flow->in_flight;
    }
    return FLOWLOOM_OK;
}

static const flowloom_transport table = {
    .head = {
        FLOWLOOM_TRANSPORT_HEAD,
        .name = "mine", .summary = "stop and wait: one packet of a flow at a time, to be changed", .source = "RFC 1350",
        .parameters = parameters, .parameter_count = sizeof parameters / sizeof *parameters,
        .counters = counters, .counter_count = sizeof counters / sizeof *counters,
        .own_size = sizeof(struct host), .state_size = sizeof(struct flow),
    },
    .create = create, .on_flow = on_flow, .on_packet = on_packet, .on_timer = on_timer,
    .poll = poll, .give_up = give_up, .sample = sample,
};

const flowloom_head *flowloom_plugin(void) { return &table.head; }
