/* ACKs in, windows out. Build and run: cc -o test_mine test_mine.c && ./test_mine */
#undef NDEBUG
#include "mine.c"

#include <assert.h>
#include <stdio.h>

#define SMSS 1460

int main(void) {
    const flowloom_host host = {.smss = SMSS};
    const flowloom_value values[] = {{62500000}, {ONE}, {1}};
    const flowloom_flow flow = {0};
    struct controller own = {0};
    struct state state = {0};
    assert(create(NULL, &own, &host, values) == FLOWLOOM_OK);
    assert(open(&own, &state, &flow) == FLOWLOOM_OK);

    /* Slow start adds the acknowledged bytes. */
    flowloom_ack ack = {.acked = SMSS, .slow_start = SMSS, .snd_una = SMSS, .snd_nxt = 10 * SMSS, .window_limited = true, .may_change = true};
    flowloom_window window = {3 * SMSS, UINT64_MAX};
    assert(on_ack(&own, &state, &window, &ack) == FLOWLOOM_OK);
    assert(window.cwnd == 4 * SMSS);

    /* The first window of observation has no mark: alpha is 15/16. A mark cuts by half of it; before a mark, the window stays. */
    assert(state.alpha == 937500000);
    uint64_t cwnd = 0;
    window = (flowloom_window){20 * SMSS, 20 * SMSS};
    ack.may_change = false;
    assert(on_ack(&own, &state, &window, &ack) == FLOWLOOM_OK);
    assert(window.cwnd == 20 * SMSS);
    assert(on_mark(&own, &state, &window, &ack, &cwnd) == FLOWLOOM_OK);
    assert(cwnd == 20 * SMSS * 17 / 32);

    /* A loss halves the flight. */
    const flowloom_loss loss = {.flight = 20 * SMSS};
    uint64_t ssthresh = 0;
    assert(on_loss(&own, &state, &window, &loss, &ssthresh) == FLOWLOOM_OK);
    assert(ssthresh == 10 * SMSS);
    puts("ok");
    return 0;
}
