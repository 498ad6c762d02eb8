# The server refuses a role before any function of pg_pulse runs, and the preloaded library names
# the grants that the role lacks.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;

my $node = start_server('main');
value($node, q{CREATE ROLE a_producer LOGIN; SELECT pulse.grant_producer('a_producer');
    CREATE ROLE "O'Hara" LOGIN;
    CREATE FUNCTION wrapped() RETURNS void LANGUAGE plpgsql
      AS 'BEGIN PERFORM pulse.cancel_job(1); END';
    CREATE FUNCTION own() RETURNS int LANGUAGE sql RETURN 1;
    CREATE FUNCTION pause_queue(text) RETURNS int LANGUAGE sql RETURN 1;
    REVOKE EXECUTE ON FUNCTION own(), pause_queue(text) FROM PUBLIC});
my $refusal = sub {
    my ($role, $statement) = @_;
    $node->psql('postgres', $statement, stderr => \my $said,
        extra_params => [ '-U', $role ]);
    like($said, qr/permission denied/, "$role: $statement");
    return $said;
};
like($refusal->("O'Hara", q{SELECT pulse.add_job('x')}),
    qr/HINT: .*SELECT pulse\.grant_producer\('"O''Hara"'\) to add jobs\./,
    'of the schema, for this role');
like($refusal->("O'Hara", q{SELECT pulse.version()}),
    qr/HINT: .*pulse\.grant_producer\('"O''Hara"'\) .* grant_caller .* grant_operator /,
    'of the schema, by a call of any kind of role');
like($refusal->('a_producer', $_), qr/HINT: .*pulse\.grant_operator\('a_producer'\)/, 'of this')
  for q{SELECT "pulse" . "pause_queue"('x')}, 'CALL pulse.run_tick()',
  'SELECT * FROM pulse.job', 'SELECT * FROM Pulse.stats', 'SELECT wrapped()';
like($refusal->('a_producer', 'SELECT * FROM pulse.schedules'),
    qr/HINT: .*pulse\.grant_scheduler\('a_producer'\)/, 'of a view of schedules');
value($node, 'GRANT pg_monitor TO a_producer');
like($refusal->('a_producer', q{SET ROLE pg_monitor; SELECT pulse.version()}),
    qr/HINT: .*pulse\.grant_producer\('ROLE'\)/, 'of another role that the session is');
unlike($refusal->('a_producer', $_), qr/HINT/, 'which is none of ours')
  for q{SELECT pulse.add_job('x', to_json(own()))}, q{SELECT pause_queue('pulse')},
  'SELECT * FROM pg_authid AS pulse';

# Each call and each relation that a kind of role may use: the grant named first gives the right.
value($node, q{CREATE ROLE of_no_kind LOGIN; GRANT USAGE ON SCHEMA pulse TO of_no_kind});
my %kinds = map { split /=/ } split /\n/, value($node, q{
    SELECT r.name || '=' || string_agg(DISTINCT kind, ',')
      FROM (SELECT kind, unnest(pulse_internal.functions_of(kind)
                                || pulse_internal.relations_of(kind)) AS name
              FROM unnest('{producer,caller,worker,scheduler,operator,observer}'::text[]) AS kind
           ) AS r
     GROUP BY r.name});
my @uses = split /\n/, value($node, q{
    SELECT p.proname || E'\t' || CASE WHEN p.prokind = 'p' THEN 'CALL' ELSE 'SELECT' END
           || format(' pulse.%I(%s)', p.proname,
                (SELECT string_agg('NULL::' || format_type(t, NULL), ', ' ORDER BY n)
                   FROM unnest(p.proargtypes) WITH ORDINALITY AS a (t, n)))
      FROM pg_proc AS p
     WHERE p.pronamespace = 'pulse'::regnamespace
       AND NOT has_function_privilege('of_no_kind', p.oid, 'EXECUTE')
    UNION ALL
    SELECT c.relname || E'\tSELECT FROM pulse.' || c.relname FROM pg_class AS c
     WHERE c.relnamespace = 'pulse'::regnamespace AND c.relkind IN ('r', 'v')});
@uses = grep { /^(\w+)/ && $kinds{$1} && $1 !~ /^(?:now$|version$|_private)/ } @uses;
$node->psql('postgres', join('', map { s/^(\w+)\t(.*)/\\warn of $1:\n$2;\n/r } @uses),
    on_error_stop => 0, stderr => \my $refusals, extra_params => [ '-U', 'of_no_kind' ]);
my (%named, @wrong);
# A call with nulls of a strict function is none.
for (grep { /permission denied/ } split /^of /m, $refusals) {
    my ($name, $kind) = /^(\w+):.*?HINT: .*?pulse\.grant_(\w+)/s;
    ($name, $kind) = (/^(\w+)/, 'none') if !$kind;
    $named{$kind}++;
    push @wrong, "$name: $kind" if ",$kinds{$name}," !~ /,$kind,/;
}
is_deeply(\@wrong, [], 'each refusal names a grant that gives the right');
cmp_ok($named{$_} // 0, '>', 1, "of a $_") for qw(producer caller worker scheduler operator);

expect_healthy($node);
done_testing();
