# Draws eight rows of bench/results/beside-ets.csv as bars: throughput over that of the faster table
# of ets, on a logarithmic axis, for one process and for two. `make figures` writes
# docs/beside-ets.svg. The rows show what large tables gain and what small ones lose. A bar beyond
# the axis crosses the break in it; its number tells.
function x(ratio) {
    ratio = ratio < LEAST ? LEAST : ratio > MOST ? MOST : ratio
    return LEFT + log(ratio / LEAST) / log(MOST / LEAST) * WIDE
}
function faster(plain, wc) { return plain < wc ? plain : wc }
function text(left, top, class, what) {
    gsub(/&/, "\\&amp;", what)
    printf "<text x=\"%.0f\" y=\"%.0f\" class=\"%s\">%s</text>\n", left, top, class, what
}
function shown(ratio) { return sprintf(ratio < 1 ? "%.2f" : ratio < 10 ? "%.1f" : "%.0f", ratio) }
function bar(top, ratio, process,    from, to, class) {
    from = x(ratio < 1 ? ratio : 1)
    to = x(ratio < 1 ? 1 : ratio)
    class = (ratio < 1 ? "loss" : "gain") process
    printf "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" class=\"%s\"/>\n",
        from, top, to - from, THICK, class
    if (ratio > MOST) {
        printf "<path d=\"M%.1f %dh%dv%dh-%dz\" class=\"%s\"/>\n",
            to + GAP + 5, top, BEYOND - GAP - 5, THICK, BEYOND - GAP, class
        printf "<path d=\"M%.1f %dh5l-5 %dz\" class=\"%s\"/>\n", to, top, THICK, class
        to += BEYOND
    }
    if (ratio < 1) text(from - 5, top + THICK - 1, "number end", shown(ratio))
    else text(to + 5, top + THICK - 1, "number", shown(ratio))
}
function heading(top, what) { text(8, top, "heading", what) }
function row(top, label, what, workload, type,    key) {
    key = workload SUBSEP type
    if (!((key, 1) in ratio) || !((key, 2) in ratio)) {
        printf "beside_ets.awk: no row %s of a %s\n", workload, type >"/dev/stderr"
        exit failed = 1
    }
    text(8, top + 12, "label", label)
    text(8, top + 27, "soft", what)
    bar(top, ratio[key, 1], 1)
    bar(top + THICK + 2, ratio[key, 2], 2)
}
BEGIN {
    FS = ","
    LEAST = 0.25; MOST = 16; LEFT = 206; WIDE = 324; BEYOND = 42; GAP = 5
    TOP = 132; ROW = 38; HEAD = 30; THICK = 13; ALL = 640
}
/^#/ || $1 == "workload" { next }
{ ratio[$1, $3, $4] = faster($5, $6) }
END {
    if (failed) exit 1
    small = TOP + 5 * ROW
    high = small + HEAD + 3 * ROW
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" " \
        "viewBox=\"0 0 %d %d\" role=\"img\">\n", ALL, high + 50, ALL, high + 50
    print "<title>Throughput of ats over that of ets</title>"
    print "<style>"
    print "text { font: 14px sans-serif; fill: #24303b }"
    print ".title { font-size: 18px; font-weight: bold } .heading { font-weight: bold }"
    print ".soft { font-size: 12.5px; fill: #5a6672 }"
    print ".end { text-anchor: end } .middle { text-anchor: middle }"
    print ".axis { fill: none; stroke: #5a6672 } .grid { stroke: #5a6672; stroke-opacity: .25 }"
    print ".gain1 { fill: #7db3e6 } .gain2 { fill: #1f6fb8 }"
    print ".loss1 { fill: #f0ad6d } .loss2 { fill: #c25e12 }"
    print "@media (prefers-color-scheme: dark) {"
    print "text { fill: #e4e9ee } .soft { fill: #a3afbb }"
    print ".axis { stroke: #a3afbb } .grid { stroke: #a3afbb }"
    print ".gain1 { fill: #9ccbf5 } .gain2 { fill: #3f8fdb }"
    print ".loss1 { fill: #f6c491 } .loss2 { fill: #dd7a2b } }"
    print "</style>"
    text(8, 24, "title", "How many times as fast as ets?")
    text(8, 44, "soft", "Throughput of ats over that of the faster of two tables of ets: with and " \
        "without write_concurrency")
    printf "<rect x=\"8\" y=\"56\" width=\"13\" height=\"13\" class=\"gain1\"/>\n"
    printf "<rect x=\"21\" y=\"56\" width=\"13\" height=\"13\" class=\"loss1\"/>\n"
    text(40, 67, "label", "1 process")
    printf "<rect x=\"118\" y=\"56\" width=\"13\" height=\"13\" class=\"gain2\"/>\n"
    printf "<rect x=\"131\" y=\"56\" width=\"13\" height=\"13\" class=\"loss2\"/>\n"
    text(150, 67, "label", "2 processes")
    text(x(1) - 8, 90, "soft end", "\342\206\220 ets is faster")
    text(x(1) + 8, 90, "soft", "ats is faster \342\206\222")
    for (r = LEAST; r <= MOST; r *= 2) {
        printf "<path d=\"M%.1f %dV%d\" class=\"%s\"/>\n", x(r), TOP - 14, high + 4,
            r == 1 ? "axis" : "grid"
        text(x(r), high + 20, "soft middle", r < 1 ? "1/" 1 / r : r)
    }
    printf "<path d=\"M%.1f %dH%.1fm-2 5l5 -10m%d 0l-5 10m2 -5H%.1f\" class=\"axis\"/>\n",
        x(LEAST), high + 4, x(MOST) + 2, GAP, x(MOST) + BEYOND
    heading(TOP - 18, "Large table: 500,000 objects")
    row(TOP, "look up a key", "ordered_set", "100 % lookup", "ordered_set")
    row(TOP + ROW, "look up a key", "set", "100 % lookup", "set")
    row(TOP + 2 * ROW, "insert and delete", "ordered_set", "50 % insert; 50 delete", "ordered_set")
    row(TOP + 3 * ROW, "insert lists of 10", "ordered_set", "insert lists of 10", "ordered_set")
    row(TOP + 4 * ROW, "count 1000 keys of a range", "ordered_set; 1 in 100 calls",
        "79 % lookup; 20 updates; 1 count of 1000", "ordered_set")
    heading(small + HEAD - 18, "Small table: 500 objects")
    row(small + HEAD, "look up a key", "set", "100 % lookup; hot", "set")
    row(small + HEAD + ROW, "count in a counter", "set", "update_counter; hot", "set")
    row(small + HEAD + 2 * ROW, "insert lists of 10", "set", "insert lists of 10; hot", "set")
    text(8, high + 42, "soft", "Integer keys, half of them present; on 2 cores. The axis is " \
        "logarithmic, and broken behind 16.")
    print "</svg>"
}
