// A made-up recording as the page's data: a shop whose database is its bottleneck.
//
//     madeUp({intervals, text})    `text` maps every text, to make it hostile

export function madeUp({ intervals = 8000, text = (t) => t, seed = 1 } = {}) {
    const random = () => {
        // mulberry32
        seed = (seed + 0x6d2b79f5) | 0;
        let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
        t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
        return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
    const begin = 1790000000123456789n,
        zero = Number(begin),
        length = 10e9;
    const strings = [""],
        known = new Map([["", 0]]);
    const string = (t) => {
        t = text(t);
        if (!known.has(t)) known.set(t, strings.push(t) - 1);
        return known.get(t);
    };
    const names = "shop_db shop_cart shop_checkout shop_stock shop_mail logger code_server shop_sup".split(" ");
    const pid = (n) => `<0.${90 + n}.0>`;
    const ref = (n) => ({
        number: n,
        node: "shop@host",
        pid: pid(n),
        name: n < names.length ? text(names[n]) : "",
        show: text(n < names.length ? `${names[n]} ${pid(n)}` : `shop_worker:init/1 ${pid(n)}`),
    });
    const rows = 40;
    const functions = ["gen_server:loop/7", "ets:lookup/2", "lists:sort/1", "shop_db:select/2", "prim_inet:recv0/3"];
    const processes = Array.from({ length: rows }, (_, n) => {
        const flat = [];
        let at = 0;
        const mean = length / (intervals / rows);
        while (at < length && flat.length / 5 < intervals / rows) {
            const put = (duration, state, name, extra = 0) => {
                const ns = Math.max(1, Math.round(Math.min(duration, length - at)));
                flat.push(0, ns, state, string(name), extra);
                at += ns;
            };
            const busy = n === 0 ? 0.8 : 0.5 / (1 + n * 0.3);
            put(mean * 4 * (1 - busy) * random(), 1, functions[n % 5]);
            if (random() < 0.3) put(mean * 0.3 * random(), 2, functions[(n + 1) % 5]);
            put(mean * 4 * busy * random(), 3, functions[(n + flat.length) % 5]);
            if (random() < 0.08) put(mean * 0.5 * random(), 4, "", random() < 0.2 ? 1 : 0);
            if (random() < 0.03) put(mean * 2, 6, "", Math.round(busy * 1000));
        }
        const { number, show, ...of } = ref(n);
        return {
            number,
            ...of,
            show,
            group: text("shop_sup"),
            began: n > 20 ? (n - 20) * 2e8 : null,
            ended: n === 25 ? 6.2e9 : null,
            row: true,
            intervals: flat,
        };
    });
    const messages = [],
        calls = [];
    for (let n = 0; n < Math.min(4000, intervals); n++) {
        const from = 1 + Math.floor(random() * (rows - 1)),
            sent = Math.round((n * length) / 4000 + random() * 1e6);
        const way = Math.round(2e4 + random() * 4e5);
        messages.push(
            from,
            0,
            sent,
            sent + way,
            1,
            string(`{'$gen_call',{${pid(from)},[alias|#Ref<0.1.2.${n % 50}>]},{select,orders}}`),
            0,
            0,
            from,
            sent + way + 3e5,
            sent + way + 34e4,
            3,
            string('{ok,[{order,4711,"blue"}]}'),
            0,
        );
        if (n % 20 === 0)
            calls.push(
                from,
                0,
                sent,
                sent + way,
                sent + way + 1e4,
                sent + way + 3e5,
                0,
                string("{select,orders}"),
                string("{ok,[]}"),
            );
    }
    const ordered = Array.from({ length: messages.length / 7 }, (_, n) => messages.slice(n * 7, n * 7 + 7))
        .sort((a, b) => a[2] - b[2])
        .flat();
    const wave = (steps, f) =>
        Array.from({ length: steps }, (_, n) => Math.max(0, f(n / steps) + 0.2 * (random() - 0.5)));
    const report = {
        version: 1,
        recording: {
            events: 1234567,
            skipped: 12,
            begin: zero,
            end: zero + length,
            seconds: 10,
            lost_events: 321,
            lost: [{ node: text("shop@host"), stream: "CPU 1", begin: zero + 4e9, end: zero + 4.05e9, count: 321 }],
            nodes: [
                {
                    node: text("shop@host"),
                    host: "host",
                    os_pid: 4711,
                    otp: "27",
                    processes: 214,
                    begin: zero,
                    end: zero + length,
                },
            ],
            kinds: "scheduling,sends,deliveries,collections,exits,server calls,calls,returns,spawns".split(","),
        },
        findings: [
            [
                "high",
                "shop_db <0.90.0> received 83 % of all messages; its callers waited 41 ms (p99)",
                "server_calls",
                0,
            ],
            ["high", "321 events were lost: numbers are too low between 4.00 s and 4.05 s", "recording", null],
            ["medium", "shop_worker:init/1 <0.115.0> crashed: {badmatch,{error,timeout}}", "exits", 25],
            ["low", "Processes waited up to 3.2 ms for a scheduler", "waits", 3],
        ].map(([severity, said, about, n]) => ({
            severity,
            text: text(said),
            about,
            process: n === null ? null : ref(n),
        })),
        processes: processes.map((_, n) => ({
            process: ref(n),
            parent: n > 7 ? ref(7) : null,
            initial: text(n < 8 ? `${names[n]}:init/1` : "shop_worker:init/1"),
            label: "",
            group: text("shop_sup"),
            began: null,
            ended: null,
            run_ns: Math.round(8e9 / (1 + n * n * 0.4)),
            runnable_ns: Math.round(4e7 * random()),
            waiting_ns: 1e9,
            collecting_ns: n % 7 === 6 ? null : Math.round(2e7 * random()),
            collections: Math.round(80 * random()),
            longest_wait_ns: Math.round(3.2e6 * random()),
            longest_wait_at: zero + 1e9,
            sent: Math.round(8000 * random()),
            received: n === 0 ? 83000 : Math.round(3000 * random()),
            mailbox_max: n === 0 ? 412 : Math.round(6 * random()),
        })),
        calls: functions.map((entry, n) => ({
            node: text("shop@host"),
            entry: text(entry),
            count: 1000 * (n + 1),
            total_ns: 3e9 / (n + 1),
            own_ns: 1e9 / (n + 1),
            p50_ns: 12e3 * (n + 1),
            p99_ns: 9e5 * (n + 1),
            max_ns: 4e6,
            exceptions: n === 1 ? 3 : 0,
            inferred: 0,
        })),
        server_calls: [1, 2, 3, 4].map((n) => ({
            caller: ref(n),
            server: ref(0),
            request: text("{select,_}"),
            example: text("{select,orders}"),
            count: 900 * n,
            p50_ns: 3e5 * n,
            p99_ns: 41e6 / n,
            max_ns: 8e7 / n,
            queued_p50_ns: 1e5,
            queued_p99_ns: 39e6 / n,
            runnable_p99_ns: 1e6 / n,
            runnable_max_ns: 2e6 / n,
            worked_p50_ns: 2e5,
            worked_p99_ns: 2e6,
            timeouts: n === 1 ? 2 : 0,
            downs: null,
        })),
        talks: Array.from({ length: 30 }, (_, n) => ({
            from: ref(n + 1),
            to: ref(0),
            messages: 9000 - 250 * n,
            inferred: n * 3,
        })),
        dead: [{ from: ref(2), to: ref(25), to_text: pid(25), messages: 17, example: text("{notify,4711}") }],
        exits: [
            {
                process: ref(25),
                time: zero + 6.2e9,
                reason: text("{badmatch,{error,timeout}}"),
                linked: [ref(7), ref(2)],
                is_crash: true,
            },
            { process: ref(26), time: zero + 7e9, reason: "normal", linked: [], is_crash: false },
        ],
        waits: [1, 2, 3].map((n) => ({
            process: ref(n),
            time: zero + n * 2e9,
            ns: 3.2e6 / n,
            function: text("gen_server:loop/7"),
            inferred: true,
        })),
        collections: [1, 2, 3].map((n) => ({
            process: ref(n),
            time: zero + n * 1.5e9,
            ns: 5e6 / n,
            is_major: n === 1,
            reclaimed_words: 120000 / n,
            heap_words: 400000,
        })),
        ports: [
            {
                port: {
                    number: 900,
                    node: "shop@host",
                    pid: "#Port<0.5>",
                    name: "tcp_inet",
                    show: "tcp_inet #Port<0.5>",
                },
                driver: "tcp_inet",
                owner: ref(4),
                messages_in: 100,
                messages_out: 90,
                bytes_out: 1234567,
                run_ns: 5e6,
            },
        ],
        spans: [{ name: text("checkout"), count: 120, p50_ns: 4e6, p99_ns: 6e7, max_ns: 9e7, failed: 2 }],
        counters: [
            { node: "shop@host", name: "memory_total", unit: "bytes", min: 31234567, max: 41234567, last: 38000000 },
            { node: "shop@host", name: "run_queue", unit: "number", min: 0, max: 7, last: 1 },
        ],
        log: [
            {
                process: ref(7),
                node: "shop@host",
                time: zero + 6.21e9,
                level: "error",
                text: text("Supervisor: {local,shop_sup}. Context: child_terminated."),
            },
        ],
        load: {
            begin: zero,
            step_ns: length / 300,
            nodes: [
                {
                    node: text("shop@host"),
                    run: wave(300, (x) => 1.2 + Math.sin(x * 9) * 0.6),
                    collecting: wave(300, (x) => 0.1 + 0.05 * Math.sin(x * 30)),
                    runnable: wave(300, (x) => 0.4 + 0.4 * Math.sin(x * 9 + 1)),
                    sent: wave(300, (x) => 300 + 100 * Math.sin(x * 9)),
                    calls: wave(300, (x) => 120 + 60 * Math.cos(x * 12)),
                },
            ],
        },
        left_out: { talks: 412 },
    };
    const timeline = {
        begin: String(begin),
        length,
        strings,
        processes,
        messages: ordered,
        covered: [[0, length]],
        calls,
        spans: Array.from({ length: 40 }, (_, n) => [
            2,
            n * 2.4e8,
            n * 2.4e8 + 9e7 * random(),
            string("checkout"),
            string("ok"),
        ]).flat(),
        marks: [3, 2.5e9, string("mark"), string("cache_miss 17"), null, 5e9, string("node up"), string("worker@host")],
        exits: [25, 6.2e9, string("{badmatch,{error,timeout}}"), 1, 26, 7e9, string("normal"), 0],
        lost: [4e9, 4.05e9, 321],
        summary: {
            processes: 214,
            rows,
            intervals: 812345,
            intervals_kept: intervals,
            merged: 700000,
            messages: 90000,
            messages_kept: 8000,
        },
    };
    const flame = tree("all", 5e9, 0);
    function tree(name, value, depth) {
        const children = [];
        let left = value * (depth < 6 ? 0.9 : 0);
        for (let n = 0; left > value * 0.05 && n < 5; n++) {
            const part = left * (0.4 + 0.4 * random());
            left -= part;
            children.push(
                tree(text(depth === 0 ? ref(n).show : functions[(n + depth) % 5]), Math.round(part), depth + 1),
            );
        }
        return {
            name: depth === 0 ? "" : name,
            value,
            own: Math.round(value - children.reduce((sum, child) => sum + child.value, 0)),
            children,
        };
    }
    return { title: text("The shop on a busy morning"), report, timeline, flame };
}

// Puts data into the template as the plugin does.
export function fill(template, data) {
    const json = JSON.stringify(data).replace(
        /[<>&\u2028\u2029]/g,
        (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"),
    );
    return template.replace("@DATA@", () => json);
}
