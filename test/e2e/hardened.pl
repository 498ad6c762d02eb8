# What `make install` puts on a machine is hardened as Debian's packages are: by its headers each
# program and library has canaries, checked sizes, addresses that are read-only before main()
# begins, and a random place.
use strict;
use warnings FATAL => 'all';

use Cwd qw(realpath);
use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Worker;

plan skip_all => 'what a sanitizer watches is built without' if Pulse::Worker->is_sanitized;

sub output_of {
    my ($out, $err) = run_command([@_]);
    is($err, '', "@_ has nothing to complain of");
    return $out;
}

sub folder { return output_of('pg_config', "--$_[0]") }

# A staged tree has the folders of the server below its own.
my $stage = $ENV{PULSE_STAGE} eq '/' ? '' : $ENV{PULSE_STAGE};
my ($worker) = run_command([ 'which', 'pulse-worker' ]);
my ($console) = run_command([ 'which', 'pulse' ]);
my $prefix = realpath($worker) =~ s{/bin/pulse-worker$}{}r;
my ($library) = grep { -e } glob "$prefix/{lib,lib/*}/libpg_pulse_worker.so";
my %file = (
    'pulse-worker' => $worker,
    'pulse' => $console,
    'pulse-minder' => "$prefix/libexec/pg_pulse/pulse-minder",
    'libpg_pulse_worker.so' => $library);
# An extension is built with the flags of its server.
$file{'pg_pulse.so'} = $stage . folder('pkglibdir') . '/pg_pulse.so'
  if folder('cflags') =~ /stack-protector/ && folder('cppflags') =~ /FORTIFY/;
# The library of musl has no functions that check sizes.
my %is_checked = map { $_ => 1 } grep { $_ ne 'pulse-minder' } keys %file;

for my $name (sort keys %file) {
    subtest $name => sub {
        my $header = output_of(qw(readelf -hlW), $file{$name});
        like($header, qr/^\s*Type:\s+DYN /m, 'its code runs at any place');
        unlike($header, qr/^\s*GNU_STACK .*E\s+0x/m, 'nothing on its stack is executed');
        like($header, qr/^\s*GNU_RELRO /m, 'what is relocated becomes read-only');
        like(output_of(qw(readelf -dW), $file{$name}), qr/BIND_NOW|Flags:.*\bNOW\b/,
            'all of it, because nothing is bound later');
        my $symbols = output_of(qw(readelf -sW), $file{$name});
        SKIP: {
            skip 'a static program of a package has no symbols', 1
              if $name eq 'pulse-minder' && $symbols eq '';
            like($symbols, qr/\b__stack_chk_fail\b/, 'its stacks have canaries');
        }
        like($symbols, qr/\b__(?!stack_chk)\w+_chk\b/, 'libc checks sizes for it')
          if $is_checked{$name};
    };
}
done_testing();
