# Reads trace.proto. Writes a header with the number of each field and each value of an enum, by the name of the
# block that it stands in: PF_TracePacket_timestamp.

BEGIN { print "enum {" }

$1 == "message" || $1 == "enum" { scope[++depth] = $2 }

depth && $NF ~ /;$/ && $(NF - 1) == "=" {
    sub(/;/, "", $NF)
    print "    PF_" scope[depth] "_" $(NF - 2) " = " $NF ","
}

$1 == "}" { depth-- }

END { print "};" }
