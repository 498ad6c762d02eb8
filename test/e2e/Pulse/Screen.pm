# A terminal that tmux keeps, for programs that draw on the whole screen.
package Pulse::Screen;

use strict;
use warnings FATAL => 'all';

use Exporter qw(import);
use Test::More;
use Time::HiRes qw(time);

use PostgreSQL::Test::Utils ();
use Pulse::Lines;
use Pulse::Process;

our @EXPORT = qw(tmux end_server screen wait_for_screen keys_are);

# Known once the test runs.
sub socket_path { return "$PostgreSQL::Test::Utils::tmp_check/tmux" }

sub tmux {
    my (@arguments) = @_;
    my ($out, $err) = PostgreSQL::Test::Utils::run_command([ 'tmux', '-f', '/dev/null', '-S',
        socket_path(), @arguments ]);
    return $out;
}
END { local $?; tmux('kill-server') if -e socket_path() }

# A new server is refused by one that still ends.
sub end_server {
    my $server = Pulse::Process->new(tmux('display-message', '-p', '#{pid}'));
    tmux('kill-server');
    $server->wait_gone or die "tmux survives\n";
    return;
}

sub screen { return tmux('capture-pane', '-p') }

# A screen that shows this, or the last one there was.
sub wait_for_screen {
    my ($expected, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $end = time + $PostgreSQL::Test::Utils::timeout_default;
    my $screen = screen();
    while ($screen !~ $expected && time < $end) {
        Pulse::Lines::pause();
        $screen = screen();
    }
    like($screen, $expected, $name);
    return $screen;
}

sub keys_are { tmux('send-keys', @_); return }

1;
