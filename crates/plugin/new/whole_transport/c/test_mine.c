/* Packets in, packets out. Build and run: cc -o test_mine test_mine.c && ./test_mine */
#undef NDEBUG
#include "mine.c"

#include <assert.h>
#include <stdio.h>

#define MSS 1460
#define SIZE (2 * MSS + 80)
#define RTO_PS UINT64_C(1000000000)

/* A simulator with one flow: its state, and what the transport has done. */
static struct {
    struct flow flow;
    flowloom_packet sent; /* the last packet of `control` */
    uint64_t due_ps;      /* when the timer is due; 0: never */
    uint64_t repeats;
    int closed, timeouts;
} simulator;

static int32_t arm(void *handle, uint32_t flow, uint32_t kind, uint64_t at_ps) {
    (void)handle, (void)flow, (void)kind;
    simulator.due_ps = at_ps;
    return FLOWLOOM_OK;
}

static int32_t disarm(void *handle, uint32_t flow, uint32_t kind) { return arm(handle, flow, kind, 0); }

static int32_t control(void *handle, const flowloom_packet *packet) {
    (void)handle;
    simulator.sent = *packet;
    return FLOWLOOM_OK;
}

static int32_t deliver(void *handle, uint32_t flow, uint64_t offset, uint64_t length, flowloom_delivery *to) {
    (void)handle, (void)flow;
    *to = (flowloom_delivery){.next = offset + length, .new_bytes = length};
    return FLOWLOOM_OK;
}

static int32_t close_flow(void *handle, uint32_t flow) {
    (void)handle, (void)flow;
    simulator.closed++;
    return FLOWLOOM_OK;
}

static int32_t timeout(void *handle, uint32_t flow) {
    (void)handle, (void)flow;
    simulator.timeouts++;
    return FLOWLOOM_OK;
}

static int32_t count(void *handle, uint32_t flow, uint32_t counter, uint64_t more) {
    (void)handle, (void)flow, (void)counter;
    simulator.repeats += more;
    return FLOWLOOM_OK;
}

static uint64_t payload(void *handle, uint32_t flow, uint64_t offset) {
    (void)handle, (void)flow;
    return offset + MSS <= SIZE ? MSS : offset < SIZE ? SIZE - offset : 0;
}

static void *state(void *handle, uint32_t flow) {
    (void)handle, (void)flow;
    return &simulator.flow;
}

static const flowloom_transport_calls calls = {
    .arm = arm, .disarm = disarm, .control = control, .deliver = deliver, .close = close_flow,
    .timeout = timeout, .count = count, .payload = payload, .state = state,
};

int main(void) {
    const flowloom_endpoint endpoint = {.mtu = 1500, .header = 40};
    const flowloom_value values[] = {{RTO_PS}};
    flowloom_context cx = {.calls = &calls};
    flowloom_packet packet, ack = {.kind = FLOWLOOM_ACK, .wire_len = 40};
    struct host own = {0};
    assert(create(NULL, &own, &endpoint, values) == FLOWLOOM_OK);

    /* Each packet waits for the ACK of the packet before it. The last packet has 80 bytes. */
    assert(on_flow(&own, &cx, 0) == FLOWLOOM_OK);
    for (uint64_t offset = 0; offset < SIZE; offset += MSS) {
        packet = (flowloom_packet){0};
        assert(poll(&own, &cx, &packet) == FLOWLOOM_OK);
        assert(packet.offset == offset && packet.payload == (offset < 2 * MSS ? MSS : 80));
        assert(packet.wire_len == packet.payload + 40 && packet.flags == 0 && simulator.due_ps == RTO_PS);
        assert(poll(&own, &cx, &packet) == FLOWLOOM_NOTHING);
        ack.offset = offset + packet.payload;
        assert(simulator.closed == 0 && on_packet(&own, &cx, &ack) == FLOWLOOM_OK);
    }
    assert(simulator.closed == 1 && poll(&own, &cx, &packet) == FLOWLOOM_NOTHING);

    /* A lost packet is retransmitted after the timeout. */
    simulator.flow = (struct flow){0};
    assert(on_flow(&own, &cx, 0) == FLOWLOOM_OK);
    assert(poll(&own, &cx, &packet) == FLOWLOOM_OK);
    cx.now_ps = RTO_PS;
    assert(on_timer(&own, &cx, RTO, 0) == FLOWLOOM_OK);
    assert(simulator.timeouts == 1 && simulator.repeats == 1);
    assert(poll(&own, &cx, &packet) == FLOWLOOM_OK);
    assert(packet.offset == 0 && packet.flags == FLOWLOOM_RETX && simulator.due_ps == 2 * RTO_PS);

    /* A receiver acknowledges the bytes that have arrived. */
    packet = (flowloom_packet){.kind = FLOWLOOM_DATA, .payload = MSS, .wire_len = 1500};
    assert(on_packet(&own, &cx, &packet) == FLOWLOOM_OK);
    assert(simulator.sent.kind == FLOWLOOM_ACK && simulator.sent.offset == MSS && simulator.sent.wire_len == 40);
    puts("ok");
    return 0;
}
