# Draws bench/results/beside-ets.csv as bars: throughput over that of the faster table of ets, on a
# logarithmic axis, for one process and for two. `make figures` writes docs/beside-ets.svg.
# Bars beyond the ends of the axis end there; their numbers tell.
function x(ratio) {
    ratio = ratio < LEAST ? LEAST : ratio > MOST ? MOST : ratio
    return log(ratio / LEAST) / log(MOST / LEAST) * WIDE
}
function faster(plain, wc) { return plain < wc ? plain : wc }
function text(left, top, anchor, what) {
    gsub(/&/, "\\&amp;", what)
    printf "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"%s\">%s</text>\n", left, top, anchor, what
}
function bar(left, top, ratio, colour,    from, to) {
    from = x(ratio < 1 ? ratio : 1)
    to = x(ratio < 1 ? 1 : ratio)
    printf "<rect x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" height=\"8\" fill=\"%s\"/>\n",
        left + from, top, to - from, colour
    text(left + to + 3, top + 8, "start", ratio)
}
BEGIN {
    FS = ","
    LEAST = 0.5; MOST = 2; WIDE = 270; LABEL = 370; TOP = 70; ROW = 24
    COLOUR[1] = "#1f7fd0"; COLOUR[2] = "#d07a1f"
}
/^#/ { notes[++note] = substr($0, 3); next }
$1 == "workload" { next }
{
    label = $1 ($2 == "integers" ? "" : ", " $2)
    gsub(/;/, ",", label)
    if (!(label in row)) { row[label] = rows; labels[rows++] = label }
    ratio[label, $3, $4] = faster($5, $6)
    while (LEAST > 0.2 && ratio[label, $3, $4] < LEAST) LEAST /= 2
    while (MOST < 16 && ratio[label, $3, $4] > MOST) MOST *= 2
}
END {
    high = TOP + rows * ROW
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\" " \
        "font-family=\"sans-serif\" font-size=\"11\" fill=\"#7a7a7a\">\n",
        LABEL + 2 * (WIDE + 60), high + 40
    title = "Throughput of ats over that of ets"
    printf "<title>%s</title>\n<g font-size=\"15\" font-weight=\"bold\">\n", title
    text(8, 20, "start", title ", the faster of its two tables")
    print "</g>"
    for (p = 1; p <= 2; p++) {
        printf "<rect x=\"%d\" y=\"33\" width=\"10\" height=\"10\" fill=\"%s\"/>\n",
            8 + (p - 1) * 100, COLOUR[p]
        text(24 + (p - 1) * 100, 42, "start", p == 1 ? "1 process" : "2 processes")
    }
    for (i = 0; i < rows; i++) text(LABEL - 8, TOP + i * ROW + 12, "end", labels[i])
    for (t = 1; t <= 2; t++) {
        type = t == 1 ? "ordered_set" : "set"
        left = LABEL + (t - 1) * (WIDE + 50)
        text(left + x(1), 42, "middle", type)
        for (r = LEAST; r <= MOST; r *= 2) {
            printf "<path d=\"M%.1f %dV%d\" stroke=\"#7a7a7a\" stroke-opacity=\"%s\"/>\n",
                left + x(r), TOP - 10, high, r == 1 ? 1 : 0.25
            text(left + x(r), TOP - 14, "middle", r)
        }
        for (i = 0; i < rows; i++) {
            for (p = 1; p <= 2; p++) {
                if ((labels[i], type, p) in ratio)
                    bar(left, TOP + i * ROW + (p - 1) * 10, ratio[labels[i], type, p], COLOUR[p])
            }
        }
    }
    for (i = 1; i <= 2; i++) text(8, high + 8 + i * 14, "start", notes[i])
    print "</svg>"
}
