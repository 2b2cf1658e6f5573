/* Packets in, next hops out. Build and run: cc -o test_mine test_mine.c && ./test_mine */
#undef NDEBUG
#include "mine.c"

#include <assert.h>
#include <stdio.h>

#define US UINT64_C(1000000)

static struct router own;
static struct state state;

/* The index of the next hop of a packet, with two links that are up and the bytes that wait there. */
static uint64_t next_hop(uint64_t now_us, uint32_t hash, uint64_t link, uint64_t waiting, uint64_t other, uint64_t other_waiting) {
    const flowloom_hop hop = {.now_ps = now_us * US, .hash = hash};
    const flowloom_packet packet = {0};
    const flowloom_candidate up[] = {{.link = link, .waiting = waiting}, {.link = other, .waiting = other_waiting}};
    uint64_t index = 2;
    assert(decide(&own, &state, &hop, &packet, up, 2, &index) == FLOWLOOM_OK);
    return index;
}

int main(void) {
    const flowloom_network network = {0};
    const flowloom_value values[] = {{10 * US}};
    assert(create(NULL, &own, &network, values) == FLOWLOOM_OK);

    assert(next_hop(0, 7, 8, 9000, 9, 500) == 1);   /* the shortest queue */
    assert(next_hop(10, 7, 8, 0, 9, 9000) == 1);    /* a pause of exactly the gap does not end the flowlet */
    assert(next_hop(10, 8, 8, 0, 9, 9000) == 0);    /* another flow */
    assert(next_hop(21, 7, 8, 0, 9, 9000) == 0);    /* a new flowlet */
    assert(next_hop(22, 7, 9, 9000, 10, 0) == 1);   /* its link is down */
    puts("ok");
    return 0;
}
