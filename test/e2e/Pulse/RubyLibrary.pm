# The library for Ruby in clients/ruby: which gems of Debian its tests have.
package Pulse::RubyLibrary;

use strict;
use warnings FATAL => 'all';

use Cwd qw(getcwd);
use Exporter qw(import);
use Test::More;

our @EXPORT = qw(require_ruby relay_minitest);

# Skips the whole file without a Ruby of version 3.1 or later that has these gems. PULSE_CLIENTS
# names another copy of the libraries; programs of a worker get no variables of such names.
sub require_ruby {
    my (@gems) = @_;
    $ENV{CLIENTS} = $ENV{PULSE_CLIENTS} // getcwd . '/clients';
    my $test = 'begin; ' . join('; ', map { "require %q($_)" } @gems)
      . '; exit RUBY_VERSION >= %q(3.1); rescue LoadError; exit false; end';
    plan skip_all => "no Ruby 3.1 with @gems" if system('ruby', '-e', $test) != 0;
    return;
}

# Takes over the results of a file of clients/ruby/test, which prints TAP.
sub relay_minitest {
    my ($name) = @_;
    subtest $name => sub {
        open my $said, '-|', 'ruby', "$ENV{CLIENTS}/ruby/test/${name}_test.rb"
          or die "ruby: $!\n";
        while (my $line = <$said>) {
            if ($line =~ /^(not )?ok \d+ - (.*?)(\s*# SKIP.*)?$/) { ok(!$1, $2) }
            elsif ($line =~ /^    /) { diag($line) }
        }
        ok(close $said, 'all was run');
    };
    return;
}

1;
