# The library's file is gone, as after a package was removed: the extension, its schema and other
# schemas can be dropped all the same. Live jobs are still guarded where the statement names them.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;

my $node = start_server('main', preload => 0);
value($node, 'CREATE ROLE stranger');
value($node, "CREATE DATABASE $_ TEMPLATE postgres") for qw(owned schema);
for my $database (qw(postgres owned schema)) {
    value($node, 'CREATE SCHEMA app AUTHORIZATION stranger', $database);
    add_job($node, 'task', undef, $database);
}

# The code that a statement of a new session is refused with, or nothing.
sub code_of {
    my ($statement, $database) = @_;
    my ($status, $out, $error) = $node->psql($database // 'postgres', "\\set VERBOSITY verbose
        $statement");
    return $error =~ /ERROR:  (\w{5}):/ ? $1 : '';
}

# No folder that new sessions look into has the file.
value($node, q{ALTER SYSTEM SET dynamic_library_path = '/nonexistent'});
$node->reload;
wait_until($node, q{SELECT current_setting('dynamic_library_path') = '/nonexistent'}, 'it is set');
is(code_of('SELECT pulse.version()'), '58P01', 'the library cannot be loaded');

is(code_of('SET ROLE stranger; DROP SCHEMA app'), '', 'a role drops a schema of its own');
is(code_of('DROP EXTENSION pg_pulse'), 'PU009', 'live jobs are not dropped without a word');
is(code_of('DROP SCHEMA pulse CASCADE', 'schema'), 'PU009', 'nor with their schema');
is(code_of('DROP EXTENSION "pg_pulse"', 'owned'), 'PU009', 'nor by a quoted name');
is(code_of('SET pulse.allow_drop = on; DROP SCHEMA pulse CASCADE', 'schema'), '',
    'a session may allow it');
is(code_of('DELETE FROM pulse.job'), '58P01', 'the triggers that count jobs are in the library');
value($node, 'ALTER TABLE pulse.job DISABLE TRIGGER USER; DELETE FROM pulse.job');
is(code_of('SET ROLE stranger; DROP EXTENSION pg_pulse'),
    '42501', 'without live jobs another role still may not drop it');
is(code_of('DROP EXTENSION pg_pulse'), '', 'its owner may');
is(code_of('DROP SCHEMA pulse'), '', 'and its schema');
is(value($node, q{SELECT count(*) FROM pg_event_trigger}), 0, 'nothing of it is left');

value($node, 'ALTER SYSTEM RESET dynamic_library_path');
$node->restart;
value($node, 'CREATE EXTENSION pg_pulse');
expect_healthy($node);
done_testing();
