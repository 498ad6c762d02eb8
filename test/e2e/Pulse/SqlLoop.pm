# Loops in SQL that sessions run in the server until a test ends them.
package Pulse::SqlLoop;
use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use Pulse::Server;

our @EXPORT = qw(allow_loops end_loops loop);

# Before the first loop, and again after end_loops() for the next ones. Gives loops the function
# linger: for so many milliseconds the transaction stays open, as one does that waits for its
# client, and leaves the processors to others; and the procedure end_all, which ends claims as a
# worker has to: what is busy is asked for again.
sub allow_loops {
    my ($node) = @_;
    value($node, q{CREATE TABLE IF NOT EXISTS looping (yes int);
        INSERT INTO looping VALUES (1);
        CREATE OR REPLACE FUNCTION linger(milliseconds double precision) RETURNS void LANGUAGE sql
            RETURN pg_sleep(milliseconds / 1000);
        CREATE OR REPLACE PROCEDURE end_all(ending text, ids bigint[], tokens bigint[])
          LANGUAGE plpgsql AS $$
        BEGIN
          LOOP
            EXECUTE format('SELECT array_agg(o.id), array_agg(($2)[o.n]) FROM pulse.%I($1, $2)
                WITH ORDINALITY AS o (id, outcome, n) WHERE o.outcome = ''busy''', ending)
              INTO ids, tokens USING ids, tokens;
            COMMIT;
            EXIT WHEN ids IS NULL;
          END LOOP;
        END $$});
    return;
}

# Each loop ends with its present turn.
sub end_loops {
    my ($node) = @_;
    value($node, 'DELETE FROM looping');
    return;
}

# `body` may end its transaction.
sub loop {
    my ($declarations, $body) = @_;
    return qq{DO \$\$
DECLARE
  turn int := 0;
  $declarations
BEGIN
  WHILE EXISTS (SELECT FROM looping) LOOP
    turn := turn + 1;
    $body
    COMMIT;
  END LOOP;
END \$\$};
}

1;
