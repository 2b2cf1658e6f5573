/* Packets in, classes out. Build and run: cc -o test_mine test_mine.c && ./test_mine */
#undef NDEBUG
#include "mine.c"

#include <assert.h>
#include <stdio.h>

#define MSS 1460

/* A simulator with one flow. */
static struct flow only;

static void *state(void *handle, uint32_t flow) {
    (void)handle, (void)flow;
    return &only;
}

static const flowloom_policy_calls calls = {.state = state};
static const flowloom_policy_context cx = {.calls = &calls};
static struct host own;

/* The class of a packet of data. */
static uint8_t class_of(uint64_t number) {
    flowloom_packet packet = {.offset = number * MSS, .payload = MSS, .prio = 7};
    assert(on_send(&own, &cx, &packet) == FLOWLOOM_OK);
    return packet.prio;
}

int main(void) {
    const flowloom_endpoint endpoint = {.classes = 8};
    const flowloom_value values[] = {{2 * MSS}, {4 * MSS}, {0}, {2}};
    assert(create(NULL, &own, &endpoint, values) == FLOWLOOM_OK);
    assert(on_open(&own, &cx, 0) == FLOWLOOM_OK);

    /* A flow moves down at each threshold. */
    const uint8_t expected[] = {0, 0, 1, 1, 2, 2};
    for (uint64_t number = 0; number < 6; number++)
        assert(class_of(number) == expected[number]);

    /* ACKs are in the first class. An ACK of new bytes begins the count of timeouts again. */
    flowloom_packet ack = {.kind = FLOWLOOM_ACK, .offset = 5 * MSS, .prio = 7};
    assert(on_send(&own, &cx, &ack) == FLOWLOOM_OK && ack.prio == 0);
    assert(on_timeout(&own, &cx, 0) == FLOWLOOM_OK);
    assert(on_receive(&own, &cx, &ack) == FLOWLOOM_OK);
    assert(on_timeout(&own, &cx, 0) == FLOWLOOM_OK);
    assert(class_of(5) == 2);

    /* The second timeout in a row returns the flow to the first class. */
    assert(on_timeout(&own, &cx, 0) == FLOWLOOM_OK);
    assert(class_of(5) == 0);
    puts("ok");
    return 0;
}
