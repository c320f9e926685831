# Reads trace.proto. Writes a header with the number of each field and the value of each enum constant. Their names
# contain the enclosing block: PF_TracePacket_timestamp.

BEGIN { print "enum {" }

$1 == "message" || $1 == "enum" { scope[++depth] = $2 }

depth && $NF ~ /;$/ && $(NF - 1) == "=" {
    sub(/;/, "", $NF)
    print "    PF_" scope[depth] "_" $(NF - 2) " = " $NF ","
}

$1 == "}" { depth-- }

END { print "};" }
